import type { EventHead } from '../../core/journal.ts';

/**
 * Heads of events that follow each other, on their way between the threads. As columns: cloning an object for each would take
 * the thread that counts them longer than counting.
 */
export interface HeadColumns {
  readonly firstSeq: number;
  /** One a line; an empty one for each of `others`. */
  readonly ids: string;
  /** Each type once. */
  readonly types: readonly string[];
  /** By head, the index of its type. */
  readonly typeOf: Uint32Array;
  readonly receivedAt: Float64Array;
  /** Heads that say more than the columns do: whole, and as well. */
  readonly others: readonly EventHead[];
}

/** Makes columns of heads that are told one after the other: an object for each would be garbage at once. */
export class HeadPacker {
  readonly #firstSeq: number;
  readonly #ids: string[] = [];
  readonly #types = new Map<string, number>();
  readonly #typeOf: Uint32Array;
  readonly #receivedAt: Float64Array;
  readonly #others: EventHead[] = [];

  /** @param most heads that it takes */
  constructor(firstSeq: number, most: number) {
    this.#firstSeq = firstSeq;
    this.#typeOf = new Uint32Array(most);
    this.#receivedAt = new Float64Array(most);
  }

  /** Of the next one. */
  get seq(): number {
    return this.#firstSeq + this.#ids.length;
  }

  get isFull(): boolean {
    return this.#ids.length === this.#typeOf.length;
  }

  /** The next one is an event of which there is no more to say. */
  plain(id: string, type: string, receivedAt: number): void {
    if (id.includes('\n')) this.other({ id, type, receivedAt, only: null, replayed: false, erased: false });
    else this.#push(id, type, receivedAt);
  }

  /** The next one, whatever it is. */
  other(head: Omit<EventHead, 'seq'>): void {
    this.#others.push({ seq: this.seq, ...head });
    this.#push('', head.type, head.receivedAt);
  }

  pack(): HeadColumns {
    const count = this.#ids.length;
    return {
      firstSeq: this.#firstSeq,
      ids: this.#ids.join('\n'),
      types: [...this.#types.keys()],
      typeOf: this.#typeOf.slice(0, count),
      receivedAt: this.#receivedAt.slice(0, count),
      others: this.#others,
    };
  }

  #push(id: string, type: string, receivedAt: number): void {
    const place = this.#ids.length;
    let number = this.#types.get(type);
    if (number === undefined) this.#types.set(type, (number = this.#types.size));
    this.#typeOf[place] = number;
    this.#receivedAt[place] = receivedAt;
    this.#ids.push(id);
  }
}

export function unpackHeads({ firstSeq, ids, types, typeOf, receivedAt, others }: HeadColumns): EventHead[] {
  if (typeOf.length === 0) return [];
  const heads: EventHead[] = ids.split('\n').map((id, place) => ({
    seq: firstSeq + place,
    id,
    type: types[typeOf[place] as number] as string,
    receivedAt: receivedAt[place] as number,
    only: null,
    replayed: false,
    erased: false,
  }));
  for (const head of others) heads[head.seq - firstSeq] = head;
  return heads;
}
