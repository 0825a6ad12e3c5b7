import { mkdir } from 'node:fs/promises';
import { RowFiles } from '../../tables/ndjson/row-files.ts';
import { tablesOf } from '../resources.ts';
import type { ServiceClient } from '../service/client.ts';
import { readState, writeState } from '../../lib/work-folder.ts';
import { shapeDocument, type OnElements } from './document.ts';
import type { Task } from './plan.ts';

/** The result of a finished task, in its folder beside its rows. */
export interface TaskResult {
  /** Rows by table; the first is the table of the items. */
  readonly rows: Readonly<Record<string, number>>;
  readonly rejects: number;
  /** Paths without a column, `table.path`, sorted. */
  readonly unknown: readonly string[];
  /** When the first request was sent, ISO 8601: what the service got later may not be in the rows. */
  readonly began_at?: string;
  /** True when the service had then pulled all that it has of this resource, as far as it says. */
  readonly settled?: boolean;
}

/** Name of the result's file. */
export const DONE = 'done.json';

/** The result of a task that was finished by this or an earlier run; null when it has to be done. */
export function finishedTask(folder: string): TaskResult | null {
  const state = readState(folder, DONE) as
    (TaskResult & { readonly meals?: number; readonly items?: number }) | null;
  if (state === null || state.meals === undefined) return state;
  // Of a run that could fetch meals only.
  return { ...state, rows: { meals: state.meals, meal_items: state.items ?? 0 } };
}

export interface PullExtras {
  /** Also gets the elements of each attempt, before the task is finished. */
  readonly onElements?: OnElements | undefined;
  /** Columns of every row that are not in the answer, beside `user_id`. */
  readonly given?: Readonly<Record<string, string>>;
  /** Noted in the result. */
  readonly notes?: Pick<TaskResult, 'began_at' | 'settled'>;
}

/**
 * Fetches the answers of a task and writes its rows and its result into the task's folder. The rows of an attempt that failed
 * are removed.
 * @throws as `shapeDocument`
 */
export async function fetchTask(
  service: ServiceClient,
  task: Omit<Task, 'index'>,
  folder: string,
  signal: AbortSignal,
  { onElements, given = {}, notes }: PullExtras = {},
): Promise<TaskResult> {
  await mkdir(folder, { recursive: true });
  const unknown = new Set<string>();
  const { user, provider, start, end } = task;
  const { made: shaped } = await RowFiles.fill(folder, tablesOf(task.resource), (files) =>
    shapeDocument(service, task, {
      onElements,
      given,
      write: (table, rows) => files.write(table, rows),
      onReject: (reject) => files.reject(JSON.stringify({ user_id: user, provider, start, end, ...reject })),
      onUnknown: (table, path) => unknown.add(`${table}.${path}`),
      signal,
    }),
  );
  const { rows, rejects } = shaped;
  const result = { rows, rejects, unknown: [...unknown].toSorted(), ...notes };
  await writeState(folder, DONE, result);
  return result;
}
