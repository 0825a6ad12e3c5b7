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

/** The tables of a document: one for the elements of its list, and those nested in them. */
export const MEAL_TABLES = ['meals', 'meal_items'] as const;

/** The resource that a backfill fetches: one document for each user and window. */
export const RESOURCE = {
  /** In the service's list of pulls. */
  pull: 'meal',
  /** The document's list. */
  list: 'meals',
  operation: 'meal summary',
} as const;

export interface ShapeMealsOptions extends Omit<
  ShapeTextOptions,
  'tables' | 'onList' | 'onMember' | 'signal'
> {
  /** Also gets the elements of the list, before it is known whether the document is whole. */
  readonly onElements?: OnElements | undefined;
  readonly signal: AbortSignal;
}

/**
 * Fetches the document of a user and a window, and shapes it into rows. When it throws, the rows that were written have to be
 * discarded: an answer that is not one whole document does not say what there is.
 * @throws ServiceError, `answer_malformed` for such an answer; what `shapeText` throws
 */
export async function shapeDocument(
  service: ServiceClient,
  { user, provider, start, end }: Omit<Task, 'index'>,
  { onElements, ...options }: ShapeMealsOptions,
): Promise<ShapeProgress> {
  const range = { start, end, ...(provider === null ? {} : { provider }) };
  const answer = await service.users.meals(user, range, { signal: options.signal });
  const document = notEmpty(answer, user);
  let hasList = false;
  const beside: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  const shaped = await shapeText(onElements === undefined ? document : handingOver(document, onElements), {
    ...options,
    tables: MEAL_TABLES,
    onList: (name) => (hasList ||= name === RESOURCE.list),
    onMember: (name, value) => (beside[name] = jsonOrSame(value)),
    onReject: (reject) => {
      // These concern the whole document, not a row.
      if (reject.code === 'cut') throw malformed(user, 'was cut short');
      if (reject.code === 'broken') throw malformed(user, `is broken: ${reject.reason}`);
      options.onReject(reject);
    },
  });
  if (!hasList) throw malformed(user, `has no list ${RESOURCE.list}`);
  const member = saysError(beside) ?? saysMore(beside);
  if (member !== null) throw malformed(user, `has "${member}" beside its list, and may not be whole`, false);
  return shaped;
}

/** With a status: the error concerns this answer, not a service that is down. */
function malformed(user: string, what: string, retryable = true): ServiceError {
  const detail = `the answer for ${user} ${what}`;
  const { operation } = RESOURCE;
  return new ServiceError({ code: 'answer_malformed', operation, status: 200, detail, retryable });
}

/** The same document. @throws ServiceError at its end when it has no byte */
async function* notEmpty(document: AsyncIterable<Buffer>, user: string): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of document) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes === 0) throw malformed(user, 'was empty');
}

/** Gets the exact bytes of some elements; the next part of the document is read once it has resolved. */
export type OnElements = (meals: readonly Buffer[]) => Promise<void>;

/** The same document, whose list is handed over element by element. `shapeText` reports what is not valid. */
async function* handingOver(document: AsyncIterable<Buffer>, onElements: OnElements): AsyncGenerator<Buffer> {
  const elements: Buffer[] = [];
  let inList = false;
  const scanner = new ElementScanner({
    containers: [RESOURCE.list],
    longest: LONGEST_ELEMENT,
    onList: () => (inList = true),
    // A copy: the bytes are a view of a chunk.
    onElement: (bytes) => void (inList && elements.push(Buffer.from(bytes))),
    onFault: () => undefined,
  });
  const handOver = async (): Promise<void> => {
    if (elements.length > 0) await onElements(elements.splice(0));
  };
  for await (const chunk of document) {
    scanner.push(chunk);
    await handOver();
    yield chunk;
  }
  scanner.end();
  await handOver();
}
