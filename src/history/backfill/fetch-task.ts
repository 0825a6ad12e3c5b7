import { mkdir } from 'node:fs/promises';
import { RowFiles } from '../../tables/ndjson/row-files.ts';
import type { ServiceClient } from '../service/client.ts';
import { readState, writeState } from '../../lib/work-folder.ts';
import { MEAL_TABLES, shapeMeals, type OnMeals } from './document.ts';
import type { Task } from './plan.ts';

/** What a finished task left in its folder, beside its rows. */
export interface TaskResult {
  readonly meals: number;
  readonly items: number;
  readonly rejects: number;
  /** Paths no column reads, `table.path`, sorted. */
  readonly unknown: readonly string[];
}

/** Is in a folder whose pull is over. */
export const DONE = 'done.json';

/** The result of a task that was finished by this or an earlier run; null when it has to be done. */
export function finishedTask(folder: string): TaskResult | null {
  return readState(folder, DONE) as TaskResult | null;
}

export interface PullExtras {
  /** Given the meals of each attempt as well, before the task is finished. */
  readonly onMeals?: OnMeals | undefined;
  /** Columns of every row that no answer fills, beside `user_id`. */
  readonly given?: Readonly<Record<string, string>>;
}

/**
 * Fetches one user's meals of one window, as they stream in, and leaves rows and result in the task's folder. What an
 * attempt that failed midway had written is thrown away: a page is there whole or not at all.
 * @throws as `shapeMeals`
 */
export async function pullMeals(
  service: ServiceClient,
  task: Omit<Task, 'index'>,
  folder: string,
  signal: AbortSignal,
  { onMeals, given = {} }: PullExtras = {},
): Promise<TaskResult> {
  await mkdir(folder, { recursive: true });
  const unknown = new Set<string>();
  const { user, provider, start, end } = task;
  const { made: shaped } = await RowFiles.fill(folder, MEAL_TABLES, (files) =>
    shapeMeals(service, task, {
      onMeals,
      given: { ...given, user_id: user },
      write: (table, rows) => files.write(table, rows),
      onReject: (reject) => files.reject(JSON.stringify({ user_id: user, provider, start, end, ...reject })),
      onUnknown: (table, path) => unknown.add(`${table}.${path}`),
      signal,
    }),
  );
  const result: TaskResult = {
    meals: shaped.rows['meals'] ?? 0,
    items: shaped.rows['meal_items'] ?? 0,
    rejects: shaped.rejects,
    unknown: [...unknown].toSorted(),
  };
  await writeState(folder, DONE, result);
  return result;
}
