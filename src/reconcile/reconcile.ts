import type { Operations } from '../core/operations.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { AcceptedRoutes } from '../route/accepted.ts';
import { countFiles, type FilesCount } from './count-files.ts';
import { IdTables } from './id-tables.ts';
import { headsOf, readJournalSide, type JournalSide } from './journal-side.ts';
import { NAMED, type Difference, type ReconcileReport, type SinkAccount } from './report.ts';
import type { Window } from './window.ts';

/** A sink that is to be accounted for. */
export interface CountedSink {
  readonly name: string;
  readonly type: string;
  /** Where its records can be read; null where nobody can be asked. */
  readonly archive: { readonly path: string; readonly opener?: RecordOpener | undefined } | null;
}

export interface ReconcileOptions {
  readonly operations: Operations;
  readonly sinks: readonly CountedSink[];
  readonly window: Window;
  readonly signal: AbortSignal;
  readonly onFile?: (sink: string, file: string) => void;
}

/**
 * Accounts for every delivery of a window, sink by sink: from the journal, and from the files themselves. It can run
 * beside a receiver: what comes in meanwhile is left out.
 * @throws MillraceError archive_unreadable; what the operations throw
 */
export async function reconcile(options: ReconcileOptions): Promise<ReconcileReport> {
  const { operations, sinks: configured, window, signal } = options;
  const account = await operations.account(window.since, window.until);
  const accepted = new AcceptedRoutes(account.routes);
  const tables = new IdTables();
  try {
    const names = new Set(configured.map(({ name }) => name));
    const side = await readJournalSide(operations, account, names, accepted, tables, window, signal);
    const gone = [...side.sinks].filter((name) => !names.has(name));
    const sinks = [...configured, ...gone.map((name) => ({ name, type: 'not configured', archive: null }))];
    const files = new Map<string, FilesCount>();
    for (const { name, archive } of sinks) {
      if (archive === null) continue;
      const onRecord = ({ record }: { record: { id: string } }): void => tables.found(name, record.id);
      const onFile = (file: string): void => options.onFile?.(name, file);
      files.set(
        name,
        await countFiles(archive.path, window, { opener: archive.opener, signal, onRecord, onFile }),
      );
    }
    // After the files were read, so that a record of theirs is late, and not of unknown origin.
    for await (const head of headsOf(operations, account.lastSeq, Infinity, signal)) tables.late(head.id);
    const differences: Difference[] = [];
    const notes = [...side.notes];
    if (side.gap > 0) {
      const detail = 'the journal has holes: records are gone that no retention has cleared away';
      differences.push({ code: 'journal_gap', sink: null, count: side.gap, ids: [], detail });
    }
    for (const [sink, { count, ids }] of side.abandoned) {
      const detail = `wait for ${sink}, which the config does not name: put it back, let a sink go on for it (continues), or drop it (millrace sink drop)`;
      differences.push({ code: 'abandoned', sink, count, ids, detail });
    }
    const started = new Map(account.started);
    const accounts = sinks.map((sink) => {
      const count = files.get(sink.name) ?? null;
      if (count !== null) differences.push(...unreadable(sink.name, count));
      const takesAll = (started.get(sink.name) ?? 0) === 0 && accepted.takesAll(sink.name);
      return accountOf(sink, side, count, takesAll, tables, differences);
    });
    const { since, until } = window;
    const span = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
    return { ...span, sinks: accounts, nowhere: side.nowhere, differences, notes };
  } finally {
    tables.close();
  }
}

/** Takes from a remainder; what is left of it is left to be explained. */
class Remainder {
  left: number;

  constructor(count: number) {
    this.left = count;
  }

  take(most: number): number {
    const taken = Math.min(this.left, Math.max(0, most));
    this.left -= taken;
    return taken;
  }
}

function accountOf(
  { name, type }: CountedSink,
  side: JournalSide,
  files: FilesCount | null,
  takesAll: boolean,
  tables: IdTables,
  differences: Difference[],
): SinkAccount {
  const ids = tables.count(name);
  const past = new Remainder(side.past);
  const unsure = new Remainder(ids.settled);
  const sealed = files?.sealed ?? 0;
  let delivered = ids.found + past.take(ids.onlyFound);
  const dead = ids.dead + past.take(tables.marksAlone(name, 'dead'));
  const dropped = side.dropped + ids.dropped + past.take(tables.marksAlone(name, 'dropped'));
  const erased = side.turnedAway + side.erased + past.take(files?.erased ?? 0);
  delivered += unsure.take(files === null ? ids.settled : sealed);
  if (files !== null) delivered += past.take(sealed - (ids.settled - unsure.left));
  const lost = files !== null && takesAll ? past.take(past.left) : 0;
  if (unsure.left > 0) {
    const detail = 'settled, as the journal has it, and not in the files';
    const named = sealed > 0 ? [] : tables.missing(name, NAMED);
    differences.push({ code: 'missing', sink: name, count: unsure.left, ids: named, detail });
  }
  const placed =
    ids.found + ids.dead + ids.dropped + ids.quarantined + ids.waiting + ids.settled + ids.elsewhere;
  if (placed !== side.retained) {
    const detail = 'of the journal’s events have no place, or more than one';
    const count = Math.abs(side.retained - placed);
    differences.push({ code: 'unplaced', sink: name, count, ids: [], detail });
  }
  if (lost > 0) {
    const detail =
      'accepted, past the journal’s retention, and not in the files of a sink that every route names';
    differences.push({ code: 'lost', sink: name, count: lost, ids: [], detail });
  }
  const strangers = ids.onlyFound - side.past - side.replayed;
  if (files !== null && strangers > 0) {
    const detail = 'in the files, and never counted as received';
    const named = tables.alone(name, NAMED);
    differences.push({ code: 'not_received', sink: name, count: strangers, ids: named, detail });
  }
  return {
    sink: name,
    type,
    counted_from: files === null ? 'journal' : 'files',
    received: side.accepted + side.duplicates + side.quarantined + side.turnedAway,
    duplicates: side.duplicates,
    quarantined: side.inQuarantine + ids.quarantined,
    delivered,
    waiting: ids.waiting,
    dead,
    dropped,
    erased,
    elsewhere: ids.elsewhere,
    untold: past.left,
    missing: unsure.left + lost,
    copies: ids.copies,
    sealed,
  };
}

function unreadable(sink: string, { problems }: FilesCount): Difference[] {
  if (problems.length === 0) return [];
  const places = problems.map(
    ({ file, line, reason }) => `${file}${line === null ? '' : `:${line}`} (${reason})`,
  );
  const detail = `records that cannot be read: ${places.join(', ')}`;
  return [{ code: 'unreadable', sink, count: problems.length, ids: [], detail }];
}
