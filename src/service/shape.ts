import { isRecord } from '../lib/is-record.ts';
import type { CallOptions } from './options.ts';
import { malformed, type Call, type Transport } from './transport.ts';

/** A value of a non-exhaustive enum: the known ones complete in an editor, every other passes. */
export type Open<T extends string> = T | (string & Record<never, never>);

/** Fields that the service may add without notice; answers keep them. */
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
    const body = await this.transport.json(call);
    if (!isRecord(body)) throw malformed(this.transport.operation(call), 'the answer is not an object', null);
    return body as T;
  }

  /** An answer that is an object with a list in `field`. @throws ServiceError answer_malformed */
  protected async readList<T>(call: Call, field: keyof T & string): Promise<T> {
    const body = await this.readObject<T>(call);
    if (!Array.isArray(body[field]))
      throw malformed(this.transport.operation(call), `the answer has no list ${field}`, null);
    return body;
  }

  /**
   * A list in `data`. Where nothing stands there, and no list elsewhere, it is empty.
   * @throws ServiceError answer_malformed
   */
  protected async readData<T>(call: Call): Promise<List<T>> {
    const body = await this.readObject<Unknown>(call);
    const { data = null } = body;
    if (Array.isArray(data)) return body as List<T>;
    if (data !== null || Object.values(body).some(Array.isArray))
      throw malformed(this.transport.operation(call), 'the answer has no list data', null);
    return { ...body, data: [] };
  }

  /** One page of a list that is read with a cursor. */
  protected readPage<T>(call: Call): Promise<CursorPage<T>> {
    return this.readList<CursorPage<T>>(call, 'data');
  }

  /** Every item, page after page. A cursor that leads back ends it with an error, not in a circle. */
  protected async *everyItem<T>(call: Call): AsyncGenerator<T> {
    const followed = new Set<string>();
    for (let cursor: string | undefined; ;) {
      const page = await this.readPage<T>({ ...call, query: { ...call.query, next_cursor: cursor } });
      yield* page.data;
      const next = page.next_cursor ?? undefined;
      if (next === undefined || next === '') return;
      if (followed.has(next))
        throw malformed(this.transport.operation(call), `the cursor ${next} leads back`, null);
      followed.add(next);
      cursor = next;
    }
  }
}

/** Operations for the bearer of a Management Key. Their paths and payloads are not documented: see DEFAULT_PATHS. */
export abstract class ManagementGroup extends Group {
  protected managed<T = Unknown>(call: Call, options: CallOptions): Promise<T> {
    return this.readObject<T>({ ...call, auth: 'management', ...options });
  }

  protected managedList<T>(call: Call, options: CallOptions): Promise<List<T>> {
    return this.readList<List<T>>({ ...call, auth: 'management', ...options }, 'data');
  }
}

export type List<T> = Unknown & { readonly data: readonly T[] };

/** One page of a list that is read with a cursor. */
export interface CursorPage<T> {
  readonly data: readonly T[];
  /** null or missing on the last page. */
  readonly next_cursor?: string | null;
}
