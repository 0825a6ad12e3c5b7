import { ElementScanner } from '../../tables/ndjson/elements.ts';
import {
  LONGEST_ELEMENT,
  shapeText,
  type ShapeProgress,
  type ShapeTextOptions,
} from '../../tables/ndjson/shape-text.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import { saysError, saysMore } from '../service/shape.ts';
import { jsonOrSame } from '../../lib/parsed.ts';
import type { Task } from './plan.ts';

/** The tables a meal document makes. */
export const MEAL_TABLES = ['meals', 'meal_items'] as const;

/** The member that holds the meals. */
const LIST = 'meals';

export interface ShapeMealsOptions extends Omit<
  ShapeTextOptions,
  'tables' | 'onList' | 'onMember' | 'signal'
> {
  /** Given the meals as well, as they come by: before it is known whether the document is whole. */
  readonly onMeals?: OnMeals | undefined;
  readonly signal: AbortSignal;
}

/**
 * Asks for one user's meals of one window and shapes them into rows. What was written of an answer that is not one whole
 * document with a list of meals, such as the page of a proxy, has to be thrown away: it does not say what meals there are.
 * @throws ServiceError, `answer_malformed` for such an answer, which another one may follow; what `shapeText` throws
 */
export async function shapeMeals(
  service: ServiceClient,
  { user, provider, start, end }: Omit<Task, 'index'>,
  { onMeals, ...options }: ShapeMealsOptions,
): Promise<ShapeProgress> {
  const range = { start, end, ...(provider === null ? {} : { provider }) };
  const answer = await service.users.meals(user, range, { signal: options.signal });
  const document = someBytes(answer, user);
  let hasList = false;
  const beside: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  const shaped = await shapeText(onMeals === undefined ? document : eachMeal(document, onMeals), {
    ...options,
    tables: MEAL_TABLES,
    onList: (name) => (hasList ||= name === LIST),
    onMember: (name, value) => (beside[name] = jsonOrSame(value)),
    onReject: (reject) => {
      // Of the page that did not arrive, and of no row.
      if (reject.code === 'cut') throw unfit(user, 'was cut short');
      if (reject.code === 'broken') throw unfit(user, `is broken: ${reject.reason}`);
      options.onReject(reject);
    },
  });
  if (!hasList) throw unfit(user, `has no list ${LIST}`);
  const member = saysError(beside) ?? saysMore(beside);
  if (member !== null) throw unfit(user, `has "${member}" beside its list, and may not be whole`, false);
  return shaped;
}

/** The status keeps it apart from a service that is down: it concerns this answer only. */
function unfit(user: string, what: string, retryable = true): ServiceError {
  const detail = `the answer for ${user} ${what}`;
  return new ServiceError({
    code: 'answer_malformed',
    operation: 'meal summary',
    status: 200,
    detail,
    retryable,
  });
}

/** An answer without a byte has no meals in it, and does not say that there are none. */
async function* someBytes(document: AsyncIterable<Buffer>, user: string): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of document) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes === 0) throw unfit(user, 'was empty');
}

/** Takes the exact bytes of some meals; the document is read on when it has resolved. */
export type OnMeals = (meals: readonly Buffer[]) => Promise<void>;

/**
 * The same document, whose meals are handed over as they come by. What is no element of the list is passed over: whoever
 * shapes the document says so.
 */
async function* eachMeal(document: AsyncIterable<Buffer>, onMeals: OnMeals): AsyncGenerator<Buffer> {
  const meals: Buffer[] = [];
  let inList = false;
  const scanner = new ElementScanner({
    containers: [LIST],
    longest: LONGEST_ELEMENT,
    onList: () => (inList = true),
    // A copy: the bytes are a view of a chunk.
    onElement: (bytes) => void (inList && meals.push(Buffer.from(bytes))),
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
