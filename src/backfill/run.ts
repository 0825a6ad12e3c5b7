import PQueue from 'p-queue';
import { systemClock, type Clock } from '../core/clock.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import { wait } from '../service/wait.ts';
import { assemble, type Outcome } from './assemble.ts';
import { Checkpoint } from './checkpoint.ts';
import { connectionKey, followPulls, type FollowProgress } from './follow.ts';
import { countTasks, tasksOf, type BackfillPlan, type Task } from './plan.ts';
import { finishedTask, pullMeals, type TaskResult } from './pull-meals.ts';
import { triggerPulls } from './trigger.ts';

export interface BackfillOptions {
  readonly service: ServiceClient;
  readonly plan: BackfillPlan;
  /** Folder of the tables. */
  readonly output: string;
  readonly resume: boolean;
  /** Trigger the bulk pull and follow it first. */
  readonly trigger: boolean;
  /** Requests of one provider at once. */
  readonly concurrency: number;
  readonly pollMs: number;
  /** Milliseconds to wait for pulls; 0 for ever. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  readonly onProgress?: (progress: BackfillProgress) => void;
}

export type BackfillProgress =
  | {
      readonly phase: 'trigger';
      readonly provider: string;
      readonly pending: number;
      readonly processed: number;
    }
  | ({ readonly phase: 'follow' } & FollowProgress)
  | { readonly phase: 'pull'; readonly total: number; readonly done: number; readonly meals: number }
  | { readonly phase: 'write' };

export interface BackfillSummary {
  readonly users: number;
  readonly tasks: number;
  readonly meals: number;
  readonly meal_items: number;
  readonly rejects: number;
  /** Users with an outcome `failed`, sorted. */
  readonly failed_users: readonly string[];
  /** Paths no column reads, `table.path`. */
  readonly unknown_fields: readonly string[];
  readonly files: readonly string[];
}

/** Tries at one task, beside the client's own at one request: for answers that break off midway. */
const TRIES = 6;
const FIRST_PAUSE = 500;

/**
 * Fetches history into tables: trigger → follow → pull → write. Every step is on disk before the next begins, and a task
 * is there whole or not at all, so a run that was ended anywhere goes on where it was and makes the same files.
 *
 * @throws MillraceError usage, folder_unwritable; ServiceError when the service refuses what concerns all users
 */
export async function runBackfill(options: BackfillOptions): Promise<BackfillSummary> {
  const { plan, output, service, signal, clock = systemClock, onProgress = () => undefined } = options;
  const checkpoint = await Checkpoint.open(output, plan, options.resume);
  if (options.trigger && !checkpoint.state.followed) {
    if (plan.providers.length === 0) throw new MillraceError('usage', '--trigger needs --provider');
    const shared = { service, clock, signal, pollMs: options.pollMs };
    await triggerPulls(plan.users, plan.providers, {
      ...shared,
      checkpoint,
      onProgress: (provider, { pending, processed }) =>
        onProgress({ phase: 'trigger', provider, pending, processed }),
    });
    const failed = await followPulls(plan.users, plan.providers, {
      ...shared,
      resource: 'meal',
      patienceMs: options.patienceMs,
      onProgress: (progress) => onProgress({ phase: 'follow', ...progress }),
    });
    await checkpoint.followed(failed);
  }
  const results = await pullAll(options, checkpoint, clock, onProgress);
  onProgress({ phase: 'write' });
  const outcomes = outcomesOf(plan, results);
  const files = await assemble(output, plan, checkpoint, outcomes);
  await checkpoint.remove();
  return summarise(plan, results, outcomes, files);
}

type Result = TaskResult | { readonly error: string };

async function pullAll(
  options: BackfillOptions,
  checkpoint: Checkpoint,
  clock: Clock,
  onProgress: (progress: BackfillProgress) => void,
): Promise<Map<number, Result>> {
  const { plan, service, concurrency } = options;
  const results = new Map<number, Result>();
  const queues = new Map<string | null, PQueue>();
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const total = countTasks(plan);
  let meals = 0;
  const running: Promise<void>[] = [];
  const one = async (task: Task): Promise<void> => {
    const result = await resultOf(task);
    results.set(task.index, result);
    if ('meals' in result) meals += result.meals;
    onProgress({ phase: 'pull', total, done: results.size, meals });
  };
  const resultOf = async (task: Task): Promise<Result> => {
    const failed =
      task.provider === null ? undefined : checkpoint.state.failed[connectionKey(task.user, task.provider)];
    if (failed !== undefined) return { error: failed };
    const folder = checkpoint.taskFolder(task.index);
    return (await finishedTask(folder)) ?? pullWithTries(service, task, folder, clock, signal);
  };
  for (const task of tasksOf(plan)) {
    // A queue for each provider: one that is slow or throttled does not hold up the others.
    let queue = queues.get(task.provider);
    if (queue === undefined) queues.set(task.provider, (queue = new PQueue({ concurrency })));
    await queue.onSizeLessThan(concurrency * 2);
    if (signal.aborted) break;
    const done = queue.add(() => one(task));
    done.catch((error: unknown) => stop.abort(error));
    running.push(done);
  }
  await Promise.all(running);
  if (signal.aborted) throw new MillraceError('interrupted', 'add --resume to go on');
  return results;
}

/** A user whose answer cannot be had is an outcome; a service that refuses us altogether is an error. */
async function pullWithTries(
  service: ServiceClient,
  task: Task,
  folder: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await pullMeals(service, task, folder, signal);
    } catch (error) {
      if (signal.aborted || error instanceof MillraceError) throw error;
      const known = error instanceof ServiceError ? error : null;
      if (known !== null && (known.status === 401 || known.status === 403)) throw error;
      if (attempt >= TRIES || known?.retryable === false) return { error: messageOf(error) };
      await wait(clock, known?.retryAfterMs ?? FIRST_PAUSE * 2 ** (attempt - 1), signal);
    }
  }
}

function outcomesOf(plan: BackfillPlan, results: ReadonlyMap<number, Result>): Outcome[] {
  const outcomes = new Map<string, Outcome>();
  for (const { index, user, provider } of tasksOf(plan)) {
    const result = results.get(index) ?? { error: 'was not done' };
    const key = `${user} ${provider ?? ''}`;
    const before = outcomes.get(key) ?? {
      user_id: user,
      provider,
      status: 'done',
      meals: 0,
      meal_items: 0,
      rejects: 0,
      error: null,
    };
    outcomes.set(
      key,
      'error' in result
        ? { ...before, status: 'failed', error: before.error ?? result.error }
        : {
            ...before,
            meals: before.meals + result.meals,
            meal_items: before.meal_items + result.items,
            rejects: before.rejects + result.rejects,
          },
    );
  }
  return [...outcomes.values()];
}

function summarise(
  plan: BackfillPlan,
  results: ReadonlyMap<number, Result>,
  outcomes: readonly Outcome[],
  files: readonly string[],
): BackfillSummary {
  const sum = (of: 'meals' | 'meal_items' | 'rejects'): number =>
    outcomes.reduce((total, outcome) => total + outcome[of], 0);
  const failed = outcomes.filter(({ status }) => status === 'failed').map(({ user_id }) => user_id);
  const unknown = [...results.values()].flatMap((result) => ('unknown' in result ? result.unknown : []));
  return {
    users: plan.users.length,
    tasks: results.size,
    meals: sum('meals'),
    meal_items: sum('meal_items'),
    rejects: sum('rejects'),
    failed_users: [...new Set(failed)],
    unknown_fields: [...new Set(unknown)].toSorted(),
    files,
  };
}
