import { inParallel } from '../../lib/abort.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { RecordEnvelope } from '../../core/archive-record.ts';
import type { Owners } from '../../core/erasure.ts';
import type { DamageReport } from '../../core/journal.ts';
import type { Operations } from '../../core/operations.ts';
import { AcceptedRoutes } from '../../deliver/routes/accepted.ts';
import type { Places } from '../../archive/places.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { accountOf, type CountedArchive, type CountedSink, type Differ } from './account.ts';
import { countFiles, FilesCount } from './count-files.ts';
import { EventIds } from './event-ids.ts';
import { headsOf, journalSide, readJournal } from './journal-side.ts';
import { accountWithLog, type HeadReader } from './log-side.ts';
import type { Difference, ReconcileReport } from './report.ts';
import type { Window } from './window.ts';

export interface ReconcileOptions {
  readonly places: Places;
  readonly operations: Operations;
  readonly sinks: readonly CountedSink[];
  /** Archives of earlier configs by sink, also by sinks that are no longer configured. */
  readonly earlier: ReadonlyMap<string, readonly CountedArchive[]>;
  readonly window: Window;
  /** Absent where no erasure can run. */
  readonly erasures?: RunningErasures;
  /** Null without a log of receipts. */
  readonly logHead: HeadReader | null;
  readonly signal: AbortSignal;
  readonly onFile?: (sink: string, file: string) => void;
}

export interface RunningErasures {
  /** The users of running erasures; null without one. */
  begun(): Owners | null;
  /** Whether an erasure has begun or ended since the last call of `begun`. */
  haveMoved(): boolean;
}

/**
 * Accounts for every delivery of a window, sink by sink, from the journal and from the files. It can run beside a
 * receiver: later events are left out.
 * @throws MillraceError archive_unreadable; what the operations throw
 */
export async function reconcile(options: ReconcileOptions): Promise<ReconcileReport> {
  const { erasures } = options;
  for (let tries = 0; ; tries += 1) {
    const report = await reconciled(options, erasures?.begun() ?? null);
    // An erasure between the two counts looks like a loss.
    if (report.differences.length === 0 || tries === MOST_TRIES) return report;
    if (erasures?.haveMoved() !== true) return report;
  }
}

const MOST_TRIES = 3;

/** @param leaving users of running erasures */
async function reconciled(options: ReconcileOptions, leaving: Owners | null): Promise<ReconcileReport> {
  const { operations, sinks: configured, earlier, window, signal } = options;
  const { account, log, problem } = await accountWithLog(options.logHead, () =>
    operations.account(window.since, window.until),
  );
  const accepted = new AcceptedRoutes(account.routes);
  const ids = new EventIds(account.dropped);
  try {
    const names = new Set(configured.map(({ name }) => name));
    // In parallel, as both wait for other threads. The files have all that the journal's account has as settled.
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
    // After the files, so that their new records are late, and not of unknown origin.
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
      const detail = `wait for ${sink}, which is not in the config: add it again, let a sink continue for it (continues), or drop it (millrace sink drop)`;
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
    const notes = [...side.notes, ...unread, ...(leaving === null ? [] : [ERASURE_RUNNING])];
    const { since, until } = window;
    const span = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
    return { ...span, sinks: accounts, nowhere: side.nowhere, log, differences, notes };
  } finally {
    ids.close();
  }
}

/** Reports the losses of the journal, by sink where the sinks that lack the events are known. */
function differDamage(damaged: readonly DamageReport[], illegible: number, differ: Differ): void {
  for (const { what, n, detail, waiting } of damaged) {
    const sinks = Object.entries(waiting);
    for (const [sink, count] of sinks) differ('missing', sink, count, `never delivered to it: ${detail}`);
    if (sinks.length === 0) differ('damaged', null, Math.max(n, what === 'database' ? 1 : 0), detail);
  }
  const known = damaged.reduce(
    (sum, { what, n }) => sum + (what === 'record' || what === 'segment' ? n : 0),
    0,
  );
  const unread = 'records of the journal cannot be read, and some sinks have not had them';
  differ('damaged', null, illegible - known, unread);
}

const ERASURE_RUNNING =
  'an erasure has begun and is not done: records of its user may be counted, or not; reconcile again when it is done';

/** Counts of the files of each sink that has some, and notes on archives of earlier configs that cannot be read. */
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
    const options = {
      places,
      opener,
      signal,
      leaving,
      // Like a late event: the journal need not have it.
      onLeaving: (id: string) => ids.late(id),
      onRecord: ({ record }: { record: Pick<RecordEnvelope, 'id' | 'received_at'> }) =>
        found(record.id, record.received_at),
      onFile: (file: string) => onFile?.(name, file),
    };
    await countFiles(
      path,
      window,
      options,
      getOrMake(files, name, () => new FilesCount()),
    );
  };
  for (const { name, archive } of sinks) if (archive !== null) await count(name, archive);
  const elsewhere = new Set(sinks.flatMap(({ name, archive }) => (archive === null ? [name] : [])));
  for (const [name, archives] of earlier) {
    // A sink of another type has this name now, without files.
    if (elsewhere.has(name)) continue;
    for (const archive of archives)
      await count(name, archive).catch((error: unknown) => {
        if (signal.aborted) throw error;
        unread.push(`${name} wrote to ${archive.path} under an earlier config: ${messageOf(error)}`);
      });
  }
  return { files, unread };
}

function placesOf(problems: FilesCount['problems']): string {
  return problems
    .map(({ file, line, reason }) => `${file}${line === null ? '' : `:${line}`} (${reason})`)
    .join(', ');
}
