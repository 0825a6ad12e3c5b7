import PQueue from 'p-queue';
import { systemClock, type Clock } from '../../core/clock.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { ServiceError } from '../service/errors.ts';
import type { Retry } from '../service/options.ts';
import { assemble } from './assemble.ts';
import { Checkpoint } from './checkpoint.ts';
import { pullHistory } from './have-pulled.ts';
import { keepRows } from './keep.ts';
import { type Outcome, type Result, type Rows } from './outcomes.ts';
import type { WatchOptions, WatchProgress } from './patience.ts';
import {
  countTasks,
  keyOf,
  pullKeyOf,
  tablesIn,
  tasksOf,
  usersLeft,
  type BackfillPlan,
  type Task,
} from './plan.ts';
import { unsettledPulls } from './shown-pulls.ts';
import { fetchRows } from './fetch-task.ts';
import { Segments } from './segments.ts';
import { Silence, withTries } from './tries.ts';

export interface BackfillOptions extends Omit<WatchOptions, 'clock' | 'onProgress'> {
  readonly plan: BackfillPlan;
  /** Folder of the tables, which this process has locked. */
  readonly output: string;
  readonly resume: boolean;
  /** True to replace rows in the files even by fewer. Default: false. */
  readonly replaces?: boolean;
  /** True when an empty list of the service removes rows that are in the files. Default: false. */
  readonly acceptsEmpty?: boolean;
  /** `_loaded_at` of every row, milliseconds since the epoch. Default: the start of the run. */
  readonly loadedAt?: number | undefined;
  /** True to trigger the pulls first, and wait for them. */
  readonly trigger: boolean;
  /** Requests in flight at once, for each provider. */
  readonly concurrency: number;
  readonly clock?: Clock;
  readonly onProgress?: (progress: BackfillProgress) => void;
  /** Called before each retry of a task. */
  readonly onRetry?: (retry: Retry) => void;
  /** Called when a write that was not acknowledged before a crash is cut off. */
  readonly onCut?: (path: string, bytes: number) => void;
  /** Called once the files are complete, before the state of the run is removed. */
  readonly onWritten?: (summary: BackfillSummary) => Promise<void>;
}

export type BackfillProgress =
  | WatchProgress
  | { readonly phase: 'pull'; readonly total: number; readonly done: number; readonly rows: Rows }
  | { readonly phase: 'write' };

export interface BackfillSummary {
  readonly users: number;
  readonly tasks: number;
  readonly meals: number;
  readonly meal_items: number;
  /** By table. */
  readonly rows: Rows;
  readonly rejects: number;
  /** Rows that were kept because the service lists nothing now. */
  readonly emptied: number;
  /** Users with an outcome `failed`, sorted. */
  readonly failed_users: readonly string[];
  /** Users whose rows were kept, as this run has fetched less; sorted. */
  readonly kept_users: readonly string[];
  /** With `trigger`: users without a connection, and users without a pull; sorted. */
  readonly not_connected_users: readonly string[];
  readonly not_pulled_users: readonly string[];
  /** Lines of `_backfill.ndjson`, by their status. */
  readonly outcomes: Readonly<Record<Outcome['status'], number>>;
  /** Number of connections that a resumed run triggers again. */
  readonly to_trigger: number;
  /** Paths without a column, `table.path`. */
  readonly unknown_fields: readonly string[];
  readonly files: readonly string[];
}

/**
 * Fetches history into tables: trigger → follow → pull → write. Each step is durable before the next begins, and a task is done
 * whole or not at all: a run that is resumed makes the same files.
 *
 * @throws MillraceError usage, folder_unwritable, bulk_op_ended, bulk_op_stuck, service_lost, rows_missing; ServiceError
 *   when the service refuses all users
 */
export async function runBackfill(options: BackfillOptions): Promise<BackfillSummary> {
  const run = { clock: systemClock, onProgress: () => undefined, onCut: () => undefined, ...options };
  const { plan, output, resume, trigger: triggers, replaces = false } = options;
  if (triggers && plan.providers.length === 0) throw new MillraceError('usage', '--trigger needs --provider');
  const loadedAt = new Date(options.loadedAt ?? run.clock.now()).toISOString();
  const checkpoint = await Checkpoint.open(output, plan, { resume, loadedAt, triggers, replaces });
  const note = (count: number): Promise<void> => checkpoint.noteSegments(count);
  await using segments = await Segments.open(
    checkpoint.runFolder,
    checkpoint.state.segments,
    note,
    run.onCut,
  );
  let results: ReadonlyMap<number, Result>;
  try {
    if (checkpoint.state.triggers && !checkpoint.state.followed) await pullHistory(checkpoint, run);
    results = await pullAll(checkpoint, segments, run);
  } catch (error) {
    // The run can be resumed.
    if (!(error instanceof ServiceError) || !(error.retryable || error.maybeApplied)) throw error;
    throw new MillraceError('service_lost', `${error.message}; --resume continues`, { cause: error });
  }
  run.onProgress({ phase: 'write' });
  const acceptsEmpty = options.acceptsEmpty === true || checkpoint.state.replaces;
  const kept = checkpoint.state.replaces
    ? { as: '', rows: new Map<number, Rows>() }
    : await keepRows(output, plan, checkpoint, segments, results, acceptsEmpty);
  // Asked again only for the pulls that had settled before.
  const isAny = [...results.values()].some((result) => 'settled' in result && result.settled);
  const isUnsettled = isAny ? await unsettledPulls(run.service, plan, run.signal) : () => true;
  const { outcomes, emptied, files } = await assemble(output, plan, segments, {
    results,
    kept,
    isUnsettled,
    acceptsEmpty,
    loadedAt: checkpoint.state.loadedAt,
  });
  const toTrigger = new Set(checkpoint.unpulled.map(({ connection }) => connection)).size;
  const summary = { ...summarise(plan, results, outcomes, files), emptied, to_trigger: toTrigger };
  await options.onWritten?.(summary);
  // --resume fetches users who failed again.
  await checkpoint.finish(summary.outcomes.failed + summary.outcomes.not_pulled > 0);
  return summary;
}

async function pullAll(
  checkpoint: Checkpoint,
  segments: Segments,
  run: BackfillOptions & Required<Pick<BackfillOptions, 'clock' | 'onProgress'>>,
): Promise<Map<number, Result>> {
  const { plan, service, concurrency, clock, onProgress, onRetry } = run;
  const results = new Map<number, Result>();
  const queues = new Map<string | null, PQueue>();
  const stop = new AbortController();
  const signal = AbortSignal.any([run.signal, stop.signal]);
  const total = countTasks(plan);
  const rows: Record<string, number> = {};
  const isUnsettled = await unsettledPulls(service, plan, signal);
  const running: Promise<void>[] = [];
  const silence = new Silence(service, concurrency * 2);
  const one = async (task: Task): Promise<void> => {
    const result = await resultOf(task);
    results.set(task.index, result);
    if ('rows' in result)
      for (const [table, count] of Object.entries(result.rows)) rows[table] = (rows[table] ?? 0) + count;
    onProgress({ phase: 'pull', total, done: results.size, rows });
  };
  const resultOf = async (task: Task): Promise<Result> => {
    const { user, provider } = task;
    // Before `without`: rows that an earlier try has fetched stay.
    const finished = segments.result(task.index);
    if (finished !== undefined) return finished;
    const { without: all } = checkpoint.state;
    const without = provider === null ? undefined : (all[keyOf({ user, provider })] ?? all[pullKeyOf(task)]);
    if (without !== undefined) return without;
    const given = { _loaded_at: checkpoint.state.loadedAt };
    const settled = !isUnsettled(task);
    try {
      const pull = async () => {
        const notes = { began_at: new Date(clock.now()).toISOString(), settled };
        const attempt = segments.begin(task);
        const pulled = await fetchRows(service, task, attempt, signal, { given, notes });
        await attempt.finish(pulled);
        return pulled;
      };
      const pulled = await withTries(pull, clock, signal, onRetry);
      await silence.note(null, signal);
      return pulled;
    } catch (error) {
      // Of one user: an outcome. Of the disk, or of all users: an error.
      if (signal.aborted || !(error instanceof ServiceError)) throw error;
      if (error.status === 401 || error.status === 403) throw error;
      await silence.note(error, signal);
      return { status: 'failed', reason: messageOf(error) };
    }
  };
  for (const task of tasksOf(plan)) {
    // A queue for each provider, so that a slow one does not hold up the others.
    const queue = getOrMake(queues, task.provider, () => new PQueue({ concurrency }));
    await queue.onSizeLessThan(concurrency * 2);
    if (signal.aborted) break;
    const done = queue.add(() => one(task));
    done.catch((error: unknown) => stop.abort(error));
    running.push(done);
  }
  // No task may write once the folder is unlocked.
  await Promise.allSettled(running);
  if (stop.signal.aborted) throw stop.signal.reason;
  if (signal.aborted) throw new MillraceError('interrupted', 'add --resume to continue');
  await silence.ended(signal);
  return results;
}

function summarise(
  plan: BackfillPlan,
  results: ReadonlyMap<number, Result>,
  outcomes: readonly Outcome[],
  files: readonly string[],
): Omit<BackfillSummary, 'emptied' | 'to_trigger'> {
  const sum = (column: string): number =>
    outcomes.reduce((total, { rows }) => total + (rows[column] ?? 0), 0);
  const usersOf = (is: (outcome: Outcome) => boolean): string[] => [
    ...new Set(outcomes.filter(is).map(({ user_id }) => user_id)),
  ];
  const count = { done: 0, failed: 0, not_connected: 0, not_pulled: 0 };
  for (const { status } of outcomes) count[status] += 1;
  const unknown = [...results.values()].flatMap((result) => ('unknown' in result ? result.unknown : []));
  return {
    users: usersLeft(plan).length,
    tasks: results.size,
    meals: sum('meals'),
    meal_items: sum('meal_items'),
    rows: Object.fromEntries(tablesIn(plan).map((table) => [table, sum(table)])),
    rejects: sum('rejects'),
    failed_users: usersOf(({ status }) => status === 'failed'),
    kept_users: usersOf(({ kept }) => kept === true),
    not_connected_users: usersOf(({ status }) => status === 'not_connected'),
    not_pulled_users: usersOf(({ status }) => status === 'not_pulled'),
    outcomes: count,
    unknown_fields: [...new Set(unknown)].toSorted(),
    files,
  };
}
