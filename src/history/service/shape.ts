import { hash } from 'node:crypto';
import { isRecord } from '../../lib/parsed.ts';
import type { Call, Transport } from './transport.ts';

/** A value of an enum that may grow: an editor completes the known ones, and every string is valid. */
export type Open<T extends string> = T | (string & Record<never, never>);

/** An answer with fields that the service may add. */
export interface Unknown {
  readonly [field: string]: unknown;
}

/** A group of operations, and how their answers are read. */
export abstract class Group {
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }

  /** An answer that is an object. @throws ServiceError answer_malformed */
  protected async readObject<T>(call: Call): Promise<T> {
    return this.#asObject(call, await this.transport.json(call)) as T;
  }

  /** An answer that is an object with a list in `field`. @throws ServiceError answer_malformed */
  protected async readList<T>(call: Call, field: keyof T & string): Promise<T> {
    const body = await this.readObject<T & Unknown>(call);
    if (!Array.isArray(body[field])) throw this.transport.malformed(call, `the answer has no list ${field}`);
    return this.#withoutError(call, body);
  }

  /**
   * A list, bare or in `data`.
   * @param mayLack true when an answer without any list means an empty one
   * @throws ServiceError answer_malformed
   */
  protected async readData<T>(call: Call, mayLack = false): Promise<List<T>> {
    const answer = await this.transport.json(call);
    if (Array.isArray(answer)) return { data: answer as T[] };
    const body = this.#asObject(call, answer);
    const { data = null } = body;
    if (Array.isArray(data)) return this.#withoutError(call, body as List<T>);
    if (!mayLack || data !== null || Object.values(body).some(Array.isArray))
      throw this.transport.malformed(call, 'the answer has no list data');
    return this.#withoutError(call, { ...body, data: [] });
  }

  /** One page of a list that is read with a cursor. */
  protected readPage<T>(call: Call): Promise<CursorPage<T>> {
    return this.readList<CursorPage<T>>(call, 'data');
  }

  /** Every item, page after page. @throws ServiceError answer_malformed at the end, when the list may not be whole */
  protected async *everyItem<T>(call: Call): AsyncGenerator<T> {
    const list = new CursorList((cursor) =>
      this.readPage<T>({ ...call, query: { ...call.query, next_cursor: cursor } }),
    );
    for await (const { data } of list.pages()) yield* data;
    if (list.problem !== null) throw this.transport.malformed(call, list.problem);
  }

  #asObject(call: Call, body: unknown): Readonly<Record<string, unknown>> {
    if (!isRecord(body)) throw this.transport.malformed(call, 'the answer is not an object');
    return body;
  }

  /** A list beside an error may not be whole. */
  #withoutError<T extends Unknown>(call: Call, body: T): T {
    const name = saysError(body);
    if (name === null) return body;
    throw this.transport.malformed(call, `the answer has "${name}" beside its list`);
  }
}

/** The member of an answer that says that more items follow, or null. */
export function saysMore(answer: object): string | null {
  return memberOf(answer, ['next_cursor', 'next', 'has_more']);
}

/** The member of an answer that reports an error, or null. */
export function saysError(answer: object): string | null {
  return memberOf(answer, ['error', 'errors']);
}

const NOTHING: ReadonlySet<unknown> = new Set([undefined, 'null', 'false', '""', '[]', '{}']);

function memberOf(answer: object, names: readonly string[]): string | null {
  return names.find((name) => !NOTHING.has(JSON.stringify(Reflect.get(answer, name)))) ?? null;
}

/** The cursor of the next page; null on the last one. */
export function cursorOf({ next_cursor: cursor, next }: CursorPage<unknown>): string | null {
  return [cursor, next].find((one) => one !== undefined && one !== null && one !== '') ?? null;
}

/** Pages in a row without a new item, after which a list counts as endless. */
const MOST_WITHOUT_NEWS = 100;

/** Reads a list whose pages have a cursor to the next one, to its end. */
export class CursorList<P extends CursorPage<unknown>> {
  readonly #read: (cursor: string | undefined) => Promise<P>;
  /** After the end: why the list may not be whole; null when it is. */
  problem: string | null = null;

  constructor(read: (cursor: string | undefined) => Promise<P>) {
    this.#read = read;
  }

  async *pages(): AsyncGenerator<P> {
    const followed = new Set<string>();
    const known = new Set<string>();
    let withoutNews = 0;
    for (let cursor: string | undefined; this.problem === null;) {
      const page = await this.#read(cursor);
      const before = known.size;
      for (const item of page.data) known.add(hash('sha256', JSON.stringify(item), 'base64'));
      withoutNews = known.size > before ? 0 : withoutNews + 1;
      yield page;
      const next = cursorOf(page);
      if (next === null) {
        const more = saysMore(page);
        if (more !== null) this.problem = `the service says ${more}, and names no next page`;
        return;
      }
      if (followed.has(next)) this.problem = `the service named the cursor ${next} twice: it leads back`;
      else if (withoutNews > MOST_WITHOUT_NEWS)
        this.problem = `the service listed nothing new on ${withoutNews} pages, and names a next one`;
      followed.add(next);
      cursor = next;
    }
  }
}

export type List<T> = Unknown & { readonly data: readonly T[] };

/** One page of a list that is read with a cursor. */
export interface CursorPage<T> {
  readonly data: readonly T[];
  /** null or missing on the last page. */
  readonly next_cursor?: string | null;
  /** Another name for it. */
  readonly next?: string | null;
}
