import { mkdir } from 'node:fs/promises';
import { RowFiles } from '../../tables/ndjson/row-files.ts';
import type { ServiceClient } from '../service/client.ts';
import { readState, writeState } from '../../lib/work-folder.ts';
import { MEAL_TABLES, shapeDocument, type OnElements } from './document.ts';
import type { Task } from './plan.ts';

/** The result of a finished task, in its folder beside its rows. */
export interface TaskResult {
  readonly meals: number;
  readonly items: number;
  readonly rejects: number;
  /** Paths without a column, `table.path`, sorted. */
  readonly unknown: readonly string[];
}

/** Name of the result's file. */
export const DONE = 'done.json';

/** The result of a task that was finished by this or an earlier run; null when it has to be done. */
export function finishedTask(folder: string): TaskResult | null {
  return readState(folder, DONE) as TaskResult | null;
}

export interface PullExtras {
  /** Also gets the elements of each attempt, before the task is finished. */
  readonly onElements?: OnElements | undefined;
  /** Columns of every row that are not in the answer, beside `user_id`. */
  readonly given?: Readonly<Record<string, string>>;
}

/**
 * Fetches the document of a task and writes its rows and its result into the task's folder. The rows of an attempt that failed
 * are removed.
 * @throws as `shapeDocument`
 */
export async function fetchTask(
  service: ServiceClient,
  task: Omit<Task, 'index'>,
  folder: string,
  signal: AbortSignal,
  { onElements, given = {} }: PullExtras = {},
): Promise<TaskResult> {
  await mkdir(folder, { recursive: true });
  const unknown = new Set<string>();
  const { user, provider, start, end } = task;
  const { made: shaped } = await RowFiles.fill(folder, MEAL_TABLES, (files) =>
    shapeDocument(service, task, {
      onElements,
      given: { ...given, user_id: user },
      write: (table, rows) => files.write(table, rows),
      onReject: (reject) => files.reject(JSON.stringify({ user_id: user, provider, start, end, ...reject })),
      onUnknown: (table, path) => unknown.add(`${table}.${path}`),
      signal,
    }),
  );
  const [listed, nested] = MEAL_TABLES;
  const result: TaskResult = {
    meals: shaped.rows[listed] ?? 0,
    items: shaped.rows[nested] ?? 0,
    rejects: shaped.rejects,
    unknown: [...unknown].toSorted(),
  };
  await writeState(folder, DONE, result);
  return result;
}
