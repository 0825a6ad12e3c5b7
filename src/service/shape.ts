import { isRecord } from './detail.ts';
import { malformed, type Call, type Transport } from './transport.ts';

/** A value of a non-exhaustive enum: the known ones complete in an editor, every other passes. */
export type Open<T extends string> = T | (string & Record<never, never>);

/** Fields that the service may add without notice; answers keep them. */
export interface Unknown {
  readonly [field: string]: unknown;
}

/** An answer that is an object. @throws ServiceError answer_malformed */
export async function objectFrom<T>(transport: Transport, call: Call): Promise<T> {
  const body = await transport.json(call);
  if (!isRecord(body)) throw malformed(transport.operation(call), 'the answer is not an object', null);
  return body as T;
}

/** An answer that is an object with a list in `field`. @throws ServiceError answer_malformed */
export async function listFrom<T>(transport: Transport, call: Call, field: keyof T & string): Promise<T> {
  const body = await objectFrom<Unknown>(transport, call);
  if (!Array.isArray(body[field])) {
    throw malformed(transport.operation(call), `the answer has no list ${field}`, null);
  }
  return body as T;
}

/** One page of a list that is read with a cursor. */
export interface CursorPage<T> {
  readonly data: readonly T[];
  /** null or missing on the last page. */
  readonly next_cursor?: string | null;
}

/** Every item of a list, page after page. A cursor that comes back unchanged ends it with an error, not in a circle. */
export async function* everyItem<T>(
  operation: string,
  fetchPage: (cursor: string | undefined) => Promise<CursorPage<T>>,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  for (;;) {
    const page = await fetchPage(cursor);
    yield* page.data;
    const next = page.next_cursor ?? undefined;
    if (next === undefined || next === '') return;
    if (next === cursor) throw malformed(operation, 'the next cursor is the one that was sent', null);
    cursor = next;
  }
}
