import { inParallel } from '../../lib/abort.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Owners } from '../../core/erasure.ts';
import type { DamageReport } from '../../core/journal.ts';
import type { Operations } from '../../core/operations.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import { AcceptedRoutes } from '../../deliver/routes/accepted.ts';
import type { Places } from '../../archive/places.ts';
import { countFiles, type FilesCount } from './count-files.ts';
import { EventIds } from './event-ids.ts';
import type { SinkIds } from './id-counter.ts';
import { headsOf, journalSide, readJournal, type JournalSide } from './journal-side.ts';
import { accountWithLog, type HeadReader } from './log-side.ts';
import type { Difference, ReconcileReport, SinkAccount } from './report.ts';
import type { Window } from './window.ts';

/** Where records can be read. */
export interface CountedArchive {
  readonly path: string;
  readonly opener?: RecordOpener | undefined;
}

/** A sink that is to be accounted for. */
export interface CountedSink {
  readonly name: string;
  readonly type: string;
  /** Null where nobody can be asked. */
  readonly archive: CountedArchive | null;
}

export interface ReconcileOptions {
  /** Where archives are opened. */
  readonly places: Places;
  readonly operations: Operations;
  readonly sinks: readonly CountedSink[];
  /** Where sinks have written under earlier configs, by their names; also sinks that are not configured any more. */
  readonly earlier: ReadonlyMap<string, readonly CountedArchive[]>;
  readonly window: Window;
  /** Left out where nobody erases meanwhile. */
  readonly erasures?: ErasuresMeanwhile;
  /** Reads how the log of receipts ends; null without one. */
  readonly logHead: HeadReader | null;
  readonly signal: AbortSignal;
  readonly onFile?: (sink: string, file: string) => void;
}

export interface ErasuresMeanwhile {
  /** Whose erasures have begun and are not done; null while there are none. */
  begun(): Owners | null;
  /** Whether one has begun or ended since `begun` was asked. */
  haveMoved(): boolean;
}

/**
 * Accounts for every delivery of a window, sink by sink: from the journal, and from the files themselves. It can run
 * beside a receiver: what comes in meanwhile is left out.
 * @throws MillraceError archive_unreadable; what the operations throw
 */
export async function reconcile(options: ReconcileOptions): Promise<ReconcileReport> {
  const { erasures } = options;
  for (let tries = 0; ; tries += 1) {
    const report = await reconciled(options, erasures?.begun() ?? null);
    // What was counted before an erasure and looked for after it is not missing.
    if (report.differences.length === 0 || tries === MOST_TRIES) return report;
    if (erasures?.haveMoved() !== true) return report;
  }
}

const MOST_TRIES = 3;

/** @param leaving users whose events some places have, and others have not any more */
async function reconciled(options: ReconcileOptions, leaving: Owners | null): Promise<ReconcileReport> {
  const { operations, sinks: configured, earlier, window, signal } = options;
  const { account, log, problem } = await accountWithLog(options.logHead, () =>
    operations.account(window.since, window.until),
  );
  const accepted = new AcceptedRoutes(account.routes);
  const ids = new EventIds(account);
  try {
    const names = new Set(configured.map(({ name }) => name));
    // Both wait for other threads most of the time. What the journal had as settled lies in the files by now.
    const [reading, { files, unread }] = await inParallel(
      signal,
      (stop) => readJournal(operations, account, names, accepted, ids, window, stop),
      (stop) => readFiles(options, leaving, ids, stop),
    );
    const gone = [...reading.sinks].filter((name) => !names.has(name));
    const sinks = [
      ...configured,
      ...gone.map((name) => ({ name, type: 'not configured', archive: earlier.get(name)?.[0] ?? null })),
    ];
    // After the files were read, so that a record of theirs is late, and not of unknown origin.
    for await (const heads of headsOf(operations, account.lastSeq, Infinity, signal))
      for (const { id } of heads) ids.late(id);
    const counts = await ids.count(
      sinks.map(({ name }) => name),
      signal,
    );
    const side = journalSide(account, reading, counts);
    const differences: Difference[] = [];
    const differ: Differ = (code, sink, count, detail, named = []) => {
      if (count > 0) differences.push({ code, sink, count, ids: named, detail });
    };
    const holes = 'the journal has holes: records are missing that retention did not remove';
    differ('journal_gap', null, side.gap, holes);
    differDamage(account.damaged ?? [], side.illegible, differ);
    if (problem !== null) differ('log', null, problem.count, problem.detail);
    for (const [sink, { count, ids: first }] of side.abandoned) {
      const detail = `wait for ${sink}, which is not in the config: put it back, let a sink continue for it (continues), or drop it (millrace sink drop)`;
      differ('abandoned', sink, count, detail, first);
    }
    const started = new Map(account.started);
    const accounts = sinks.map((sink) => {
      const count = files.get(sink.name) ?? null;
      const problems = count?.problems ?? [];
      differ('unreadable', sink.name, problems.length, `records that cannot be read: ${placesOf(problems)}`);
      const takesAll = (started.get(sink.name) ?? 0) === 0 && accepted.takesAll(sink.name);
      const own = counts.sinks.get(sink.name);
      if (own === undefined) throw new MillraceError('internal', `${sink.name} was not counted`);
      return accountOf(sink, side, count, takesAll, own, differ);
    });
    const notes = [...side.notes, ...unread, ...(leaving === null ? [] : [UNDER_WAY])];
    const { since, until } = window;
    const span = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
    return { ...span, sinks: accounts, nowhere: side.nowhere, log, differences, notes };
  } finally {
    ids.close();
  }
}

/** What the journal has lost, by sink where it is known which had not had it. */
function differDamage(damaged: readonly DamageReport[], illegible: number, differ: Differ): void {
  for (const { what, n, detail, waiting } of damaged) {
    const sinks = Object.entries(waiting);
    for (const [sink, count] of sinks) differ('missing', sink, count, `never delivered to it: ${detail}`);
    if (sinks.length === 0) differ('damaged', null, Math.max(n, what === 'database' ? 1 : 0), detail);
  }
  const told = damaged.reduce(
    (sum, { what, n }) => sum + (what === 'record' || what === 'segment' ? n : 0),
    0,
  );
  const unread = 'records of the journal cannot be read, and some sinks have not had them';
  differ('damaged', null, illegible - told, unread);
}

const UNDER_WAY =
  'an erasure has begun and is not done: records of its user may be counted, or not; reconcile again when it is done';

/** What the files of each sink that has some hold of the window; and which places of earlier configs cannot be read. */
async function readFiles(
  { places, sinks, earlier, window, onFile }: ReconcileOptions,
  leaving: Owners | null,
  ids: EventIds,
  signal: AbortSignal,
): Promise<{ readonly files: ReadonlyMap<string, FilesCount>; readonly unread: readonly string[] }> {
  const files = new Map<string, FilesCount>();
  const unread: string[] = [];
  const count = async (name: string, { path, opener }: CountedArchive): Promise<void> => {
    const found = ids.finder(name);
    const counted = await countFiles(path, window, {
      places,
      opener,
      signal,
      leaving,
      // As what came in later: the journal need not have it.
      onLeaving: (id) => ids.late(id),
      onRecord: ({ record }) => found(record.id, record.received_at),
      onFile: (file) => onFile?.(name, file),
    });
    files.set(name, sumOf(files.get(name) ?? NOTHING_COUNTED, counted));
  };
  for (const { name, archive } of sinks) if (archive !== null) await count(name, archive);
  const elsewhere = new Set(sinks.flatMap(({ name, archive }) => (archive === null ? [name] : [])));
  for (const [name, archives] of earlier) {
    // A sink of another type has this name now, and what it has confirmed is in no file.
    if (elsewhere.has(name)) continue;
    for (const archive of archives)
      await count(name, archive).catch((error: unknown) => {
        if (signal.aborted) throw error;
        files.set(name, files.get(name) ?? NOTHING_COUNTED);
        unread.push(`${name} wrote to ${archive.path} under an earlier config: ${messageOf(error)}`);
      });
  }
  return { files, unread };
}

const NOTHING_COUNTED: FilesCount = {
  records: 0,
  destroyed: 0,
  closed: 0,
  erased: 0,
  problems: [],
  passedOver: 0,
};

function sumOf(one: FilesCount, other: FilesCount): FilesCount {
  return {
    records: one.records + other.records,
    destroyed: one.destroyed + other.destroyed,
    closed: one.closed + other.closed,
    erased: one.erased + other.erased,
    problems: [...one.problems, ...other.problems],
    passedOver: one.passedOver + other.passedOver,
  };
}

/** Notes a difference, unless `count` is 0. @param named ids of the first */
type Differ = (
  code: Difference['code'],
  sink: string | null,
  count: number,
  detail: string,
  named?: readonly string[],
) => void;

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
  { name, type, archive }: CountedSink,
  side: JournalSide,
  files: FilesCount | null,
  takesAll: boolean,
  ids: SinkIds,
  differ: Differ,
): SinkAccount {
  const past = new Remainder(side.past);
  const unsure = new Remainder(ids.settled);
  const { destroyed = 0, closed = 0 } = files ?? {};
  let delivered = ids.found + past.take(ids.onlyFound);
  const dead = ids.dead + past.take(ids.deadAlone);
  const dropped = side.dropped + ids.dropped + past.take(ids.droppedAlone);
  const alone = side.erasedAlone.filter((sink) => sink === name).length;
  const erased = side.turnedAway + side.erased + past.take(files?.erased ?? 0) + past.take(alone);
  // What the journal has erased explains as many records of destroyed keys: no event that it still has is one of those.
  delivered += unsure.take(files === null ? ids.settled : destroyed - side.erased);
  if (files !== null) delivered += past.take(destroyed - (ids.settled - unsure.left));
  const named = unsure.left === ids.settled ? ids.missing : [];
  const unread = unsure.take(closed);
  const unreadPast = takesAll ? past.take(closed - unread) : 0;
  differ(
    'unreadable',
    name,
    unread + unreadPast,
    `not in the records that open: ${closed} in the files of ${archive?.path ?? ''} are sealed with keys that are not in the key store (restore its newest copy, or name it with --keys)`,
    unsure.left === 0 ? named : [],
  );
  // Events that were erased, or, where not every route names the sink, are past retention, may be among them.
  const erasedToo = Math.max(0, side.erased - destroyed);
  const unknown = closed - unread - unreadPast - erasedToo - (takesAll ? 0 : past.left);
  const keyless = `in the files of ${archive?.path ?? ''} and not among the events that this journal counted: sealed with keys that are not in the key store (restore its newest copy, or name it with --keys), or those of another receiver that writes there`;
  differ('unreadable', name, unknown, keyless);
  const lost = files !== null && takesAll ? past.take(past.left) : 0;
  differ(
    'missing',
    name,
    unsure.left,
    archive === null
      ? 'confirmed by the journal, but not in the files'
      : `confirmed by the journal, but not in the files of ${archive.path}; if the path was another one when they came, look there`,
    unread === 0 ? named : [],
  );
  const placed =
    ids.found + ids.dead + ids.dropped + ids.quarantined + ids.waiting + ids.settled + ids.elsewhere;
  const unplaced = Math.abs(side.retained - placed);
  differ('unplaced', name, unplaced, 'of the journal’s events have no position, or more than one');
  const gone =
    'accepted, past the journal’s retention, but not in the files of a sink that every route names';
  differ('lost', name, lost, gone);
  const strangers = files === null ? 0 : ids.onlyFound - side.past - side.replayed;
  const strange = `in the files of ${archive?.path ?? ''}, but never counted as received by this journal: they are those of another receiver that writes there (reconcile with its journal), or of nobody`;
  differ('not_received', name, strangers, strange, ids.alone);
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
    missing: unsure.left + lost + unread + unreadPast,
    copies: ids.copies,
    sealed: destroyed + closed,
  };
}

function placesOf(problems: FilesCount['problems']): string {
  return problems
    .map(({ file, line, reason }) => `${file}${line === null ? '' : `:${line}`} (${reason})`)
    .join(', ');
}
