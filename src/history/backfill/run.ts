import PQueue from 'p-queue';
import { systemClock, type Clock } from '../../core/clock.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import type { Retry } from '../service/options.ts';
import { assemble } from './assemble.ts';
import { Checkpoint } from './checkpoint.ts';
import { haveHistoryPulled } from './have-pulled.ts';
import { keepRows } from './keep.ts';
import type { Outcome, Result } from './outcomes.ts';
import type { PullProgress } from './patience.ts';
import { countTasks, keyOf, tasksOf, usersLeft, type BackfillPlan, type Task } from './plan.ts';
import { finishedTask, pullMeals } from './fetch-task.ts';
import { Silence, withTries } from './tries.ts';

export interface BackfillOptions {
  readonly service: ServiceClient;
  readonly plan: BackfillPlan;
  /** Folder of the tables, which nobody else writes meanwhile. */
  readonly output: string;
  readonly resume: boolean;
  /** Whether rows that are in the files go also where less is fetched now. Default: false. */
  readonly replaces?: boolean;
  /** `_loaded_at` of every row, milliseconds since the epoch. Default: when the run begins. */
  readonly loadedAt?: number | undefined;
  /** Trigger the bulk pull and follow it first. */
  readonly trigger: boolean;
  /** Requests of one provider at once. */
  readonly concurrency: number;
  readonly pollMs: number;
  /** Milliseconds without progress of the service's bulk operation, or of its pulls; 0 waits for ever. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  readonly onProgress?: (progress: BackfillProgress) => void;
  /** Told before each pause of a task that is done again. */
  readonly onRetry?: (retry: Retry) => void;
  /** Told when the files are complete, before what `resume` continues from goes. */
  readonly onWritten?: (summary: BackfillSummary) => Promise<void>;
}

export type BackfillProgress =
  | PullProgress
  | { readonly phase: 'pull'; readonly total: number; readonly done: number; readonly meals: number }
  | { readonly phase: 'write' };

/** Rows and outcomes as the files have them. */
export interface BackfillSummary {
  readonly users: number;
  readonly tasks: number;
  readonly meals: number;
  readonly meal_items: number;
  readonly rejects: number;
  /** Users with an outcome `failed`, sorted. */
  readonly failed_users: readonly string[];
  /** Users whose rows are those that were there before, for less was fetched; sorted. */
  readonly kept_users: readonly string[];
  /** With `trigger`: users without a connection, and users for whom the service has pulled nothing; sorted. */
  readonly not_connected_users: readonly string[];
  readonly not_pulled_users: readonly string[];
  /** Lines of `_backfill.ndjson`, a user and provider each, by their status. */
  readonly outcomes: Readonly<Record<Outcome['status'], number>>;
  /** Connections whose pulls a run that is resumed triggers again. */
  readonly to_trigger: number;
  /** Paths no column reads, `table.path`. */
  readonly unknown_fields: readonly string[];
  readonly files: readonly string[];
}

/**
 * Fetches history into tables: trigger → follow → pull → write. Every step is on disk before the next begins, and a task
 * is there whole or not at all, so a run that was ended anywhere continues where it was and makes the same files.
 *
 * @throws MillraceError usage, folder_unwritable, bulk_op_ended, bulk_op_stuck, service_lost, rows_missing; ServiceError
 *   when the service refuses what concerns all users
 */
export async function runBackfill(options: BackfillOptions): Promise<BackfillSummary> {
  const run = { clock: systemClock, onProgress: () => undefined, ...options };
  const { plan, output, resume, trigger: triggers, replaces = false } = options;
  if (triggers && plan.providers.length === 0) throw new MillraceError('usage', '--trigger needs --provider');
  const loadedAt = new Date(options.loadedAt ?? run.clock.now()).toISOString();
  const checkpoint = await Checkpoint.open(output, plan, { resume, loadedAt, triggers, replaces });
  let results: ReadonlyMap<number, Result>;
  try {
    if (checkpoint.state.triggers && !checkpoint.state.followed) await haveHistoryPulled(checkpoint, run);
    results = await pullAll(checkpoint, run);
  } catch (error) {
    // From here on there is something to resume.
    if (!(error instanceof ServiceError) || !(error.retryable || error.maybeApplied)) throw error;
    throw new MillraceError('service_lost', `${error.message}; --resume continues`, { cause: error });
  }
  run.onProgress({ phase: 'write' });
  const kept = checkpoint.state.replaces ? new Map() : await keepRows(output, plan, checkpoint, results);
  const { outcomes, files } = await assemble(output, plan, checkpoint, { results, kept });
  const toTrigger = checkpoint.withoutPull.length;
  const summary = { ...summarise(plan, results, outcomes, files), to_trigger: toTrigger };
  await options.onWritten?.(summary);
  // Who failed can be asked for again, with --resume.
  await checkpoint.finish(summary.outcomes.failed + summary.outcomes.not_pulled > 0);
  return summary;
}

/** Does all tasks of the plan. */
async function pullAll(
  checkpoint: Checkpoint,
  run: BackfillOptions & Required<Pick<BackfillOptions, 'clock' | 'onProgress'>>,
): Promise<Map<number, Result>> {
  const { plan, service, concurrency, clock, onProgress, onRetry } = run;
  const results = new Map<number, Result>();
  const queues = new Map<string | null, PQueue>();
  const stop = new AbortController();
  const signal = AbortSignal.any([run.signal, stop.signal]);
  const total = countTasks(plan);
  let meals = 0;
  const running: Promise<void>[] = [];
  const silence = new Silence(service, concurrency * 2);
  const one = async (task: Task): Promise<void> => {
    const result = await resultOf(task);
    results.set(task.index, result);
    if ('meals' in result) meals += result.meals;
    onProgress({ phase: 'pull', total, done: results.size, meals });
  };
  const resultOf = async (task: Task): Promise<Result> => {
    const { user, provider } = task;
    const folder = checkpoint.taskFolder(task.index);
    // What a try before has fetched stays, whatever the service says of that user now.
    const finished = finishedTask(folder);
    if (finished !== null) return finished;
    const without = provider === null ? undefined : checkpoint.state.without[keyOf({ user, provider })];
    if (without !== undefined) return without;
    const given = { _loaded_at: checkpoint.state.loadedAt };
    try {
      const pull = () => pullMeals(service, task, folder, signal, { given });
      const pulled = await withTries(pull, clock, signal, onRetry);
      await silence.told(null, signal);
      return pulled;
    } catch (error) {
      // A user whose answer cannot be had is an outcome; a service that refuses us altogether is an error, and so is our own disk.
      if (signal.aborted || !(error instanceof ServiceError)) throw error;
      if (error.status === 401 || error.status === 403) throw error;
      await silence.told(error, signal);
      return { status: 'failed', reason: messageOf(error) };
    }
  };
  for (const task of tasksOf(plan)) {
    // A queue for each provider: one that is slow or throttled does not hold up the others.
    const queue = getOrMake(queues, task.provider, () => new PQueue({ concurrency }));
    await queue.onSizeLessThan(concurrency * 2);
    if (signal.aborted) break;
    const done = queue.add(() => one(task));
    done.catch((error: unknown) => stop.abort(error));
    running.push(done);
  }
  // All of them: none may write any more when the folder is released.
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
): Omit<BackfillSummary, 'to_trigger'> {
  const sum = (of: 'meals' | 'meal_items' | 'rejects'): number =>
    outcomes.reduce((total, outcome) => total + outcome[of], 0);
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
