import { mkdir } from 'node:fs/promises';
import { ElementScanner } from '../ndjson/elements.ts';
import { RowFiles } from '../ndjson/row-files.ts';
import { LONGEST_ELEMENT, shapeText } from '../ndjson/shape-text.ts';
import type { ServiceClient } from '../service/client.ts';
import { readState, writeState } from '../lib/work-folder.ts';
import type { Task } from './plan.ts';

/** The tables a meal document makes. */
export const MEAL_TABLES = ['meals', 'meal_items'] as const;

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
 */
export async function pullMeals(
  service: ServiceClient,
  { user, provider, start, end }: Omit<Task, 'index'>,
  folder: string,
  signal: AbortSignal,
  { onMeals, given = {} }: PullExtras = {},
): Promise<TaskResult> {
  await mkdir(folder, { recursive: true });
  const files = await RowFiles.open(folder, MEAL_TABLES);
  const unknown = new Set<string>();
  try {
    const range = { start, end, ...(provider === null ? {} : { provider }) };
    const document = someBytes(await service.meals.stream(user, range, { signal }), user);
    const shaped = await shapeText(onMeals === undefined ? document : eachMeal(document, onMeals), {
      tables: MEAL_TABLES,
      given: { ...given, user_id: user },
      write: (table, rows) => files.write(table, rows),
      onReject: (reject) => {
        // A document that ends early is a page that did not arrive, not a row that is wrong.
        if (reject.code === 'cut') throw new Error(`the answer for ${user} was cut short`);
        files.reject(JSON.stringify({ user_id: user, provider, start, end, ...reject }));
      },
      onUnknown: (table, path) => unknown.add(`${table}.${path}`),
      signal,
    });
    await files.finish();
    const result: TaskResult = {
      meals: shaped.rows['meals'] ?? 0,
      items: shaped.rows['meal_items'] ?? 0,
      rejects: shaped.rejects,
      unknown: [...unknown].toSorted(),
    };
    await writeState(folder, DONE, result);
    return result;
  } catch (error) {
    await files.discard();
    throw error;
  }
}

/** An answer without a byte has no meals in it, and does not say that there are none. */
async function* someBytes(document: AsyncIterable<Buffer>, user: string): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of document) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes === 0) throw new Error(`the answer for ${user} was empty`);
}

/** Takes the exact bytes of some meals; the document is read on when it has resolved. */
export type OnMeals = (meals: readonly Buffer[]) => Promise<void>;

/**
 * The same document, whose meals are handed over as they come by. What is no element is passed over: whoever shapes the
 * document says so.
 */
export async function* eachMeal(document: AsyncIterable<Buffer>, onMeals: OnMeals): AsyncGenerator<Buffer> {
  const meals: Buffer[] = [];
  const scanner = new ElementScanner({
    containers: ['meals', 'data'],
    longest: LONGEST_ELEMENT,
    // A copy: the bytes are a view of a chunk.
    onElement: (bytes) => meals.push(Buffer.from(bytes)),
    onFault: () => undefined,
  });
  const handOver = async (): Promise<void> => {
    if (meals.length > 0) await onMeals(meals.splice(0));
  };
  for await (const chunk of document) {
    scanner.push(chunk);
    await handOver();
    yield chunk;
  }
  scanner.end();
  await handOver();
}
