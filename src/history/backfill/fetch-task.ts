import { mkdir } from 'node:fs/promises';
import { RowFiles } from '../../tables/ndjson/row-files.ts';
import { tablesOf } from '../resources.ts';
import type { ServiceClient } from '../service/client.ts';
import { readState, writeState } from '../../lib/work-folder.ts';
import { shapeDocument, type OnElements } from './document.ts';
import type { Task } from './plan.ts';

/** The result of a finished task, kept with its rows. */
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

/** Name of the file of the result, where a task has a folder. */
export const DONE = 'done.json';

/** True when the task of this folder was finished, by this or an earlier process. */
export function isFinishedTask(folder: string): boolean {
  return readState(folder, DONE) !== null;
}

export interface PullExtras {
  /** Also gets the elements of each attempt, before the task is finished. */
  readonly onElements?: OnElements | undefined;
  /** Columns of every row that are not in the answer, beside `user_id`. */
  readonly given?: Readonly<Record<string, string>>;
  /** Noted in the result. */
  readonly notes?: Pick<TaskResult, 'began_at' | 'settled'>;
}

/** Takes the rows of a task. */
export interface TaskRows {
  /** Appends whole lines, valid until it resolves; one call at a time for each table. */
  write(table: string, rows: Buffer): Promise<void>;
  reject(line: string): void;
}

/**
 * Fetches the answers of a task and writes its rows and its result into a folder. The rows of an attempt that failed are removed.
 * @throws as `shapeDocument`
 */
export async function fetchTask(
  service: ServiceClient,
  task: Omit<Task, 'index'>,
  folder: string,
  signal: AbortSignal,
  extras: PullExtras = {},
): Promise<TaskResult> {
  await mkdir(folder, { recursive: true });
  const fill = (files: RowFiles) => fetchRows(service, task, files, signal, extras);
  const { made: result } = await RowFiles.fill(folder, tablesOf(task.resource), fill);
  await writeState(folder, DONE, result);
  return result;
}

/** Fetches the answers of a task. When it throws, the rows that were written have to be discarded. @throws as `shapeDocument` */
export async function fetchRows(
  service: ServiceClient,
  task: Omit<Task, 'index'>,
  files: TaskRows,
  signal: AbortSignal,
  { onElements, given = {}, notes }: PullExtras = {},
): Promise<TaskResult> {
  const unknown = new Set<string>();
  const { user, provider, start, end } = task;
  const { rows, rejects } = await shapeDocument(service, task, {
    onElements,
    given,
    write: (table, some) => files.write(table, some),
    onReject: (reject) => files.reject(JSON.stringify({ user_id: user, provider, start, end, ...reject })),
    onUnknown: (table, path) => unknown.add(`${table}.${path}`),
    signal,
  });
  return { rows, rejects, unknown: [...unknown].toSorted(), ...notes };
}
