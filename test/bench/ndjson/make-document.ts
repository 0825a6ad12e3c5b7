import { open } from 'node:fs/promises';
import { madeUpMeals, type MealPlan } from '../../../src/sandbox/made-up-meals.ts';

const DAY_MS = 86_400_000;
const PIECE = 1024 * 1024;
/** A user's years of meals; then the next user's follow. */
const DAYS = 3650;
const PLAN: MealPlan = { seed: 7, sinceMs: Date.UTC(2016, 0, 1), days: DAYS, mealsPerDay: 5 };

/**
 * Writes `{"meals":[…]}` of at least this size: the meals of the sandbox, the same on every run.
 * @returns meals and bytes
 */
export async function makeDocument(
  path: string,
  size: number,
  signal: AbortSignal,
): Promise<{ meals: number; bytes: number }> {
  await using file = await open(path, 'w');
  let bytes = 0;
  let meals = 0;
  let piece = '{"meals":[';
  for (const meal of everyMeal()) {
    piece += `${meals === 0 ? '' : ','}${JSON.stringify(meal)}`;
    meals += 1;
    if (piece.length < PIECE) continue;
    signal.throwIfAborted();
    bytes += (await file.write(piece)).bytesWritten;
    piece = '';
    if (bytes >= size) break;
  }
  bytes += (await file.write(`${piece}]}\n`)).bytesWritten;
  return { meals, bytes };
}

function* everyMeal(): Generator<object> {
  for (let user = 0; ; user += 1) yield* mealsOf(`made-up-user-${user}`);
}

function mealsOf(user: string): Iterable<object> {
  const { sinceMs } = PLAN;
  const endMs = sinceMs + DAYS * DAY_MS;
  return madeUpMeals(PLAN, { user, providers: ['made_up_one', 'made_up_two'], startMs: sinceMs, endMs });
}
