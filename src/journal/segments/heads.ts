import type { EventHead } from '../../core/journal.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { RECORD_HEADER } from './format.ts';
import type { SegmentLog, Visited } from './log.ts';
import { titleAt } from './records.ts';
import type { FoundRecord } from './walker.ts';

/**
 * Heads of consecutive events on their way between the threads, as columns: cloning an object for each takes longer than what the
 * receiving thread does with it.
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
  /** Heads that the columns cannot hold, whole. */
  readonly others: readonly EventHead[];
}

/** Heads of one answer: a few milliseconds of the writer thread. */
const HEADS = 2000;
/** Head of a record that is missing or damaged. */
const EMPTY = { id: '', type: '', receivedAt: 0, only: [], replayed: false, erased: false };

/** Heads of the events after `after`, without their bodies; none at the end. */
export function headsAfter(log: SegmentLog, after: number): HeadColumns {
  const heads = new HeadPacker(Math.max(after + 1, log.firstSeq), HEADS);
  const missUpTo = (seq: number): void => {
    while (heads.seq < seq && !heads.isFull) heads.other(EMPTY);
  };
  for (const found of log.records(heads.seq)) {
    missUpTo(found.item.seq);
    if (!heads.isFull) packHead(heads, found);
    if (heads.isFull) return heads.pack();
  }
  missUpTo(log.lastSeq + 1);
  return heads.pack();
}

function packHead(heads: HeadPacker, { item, walker }: Visited<FoundRecord>): void {
  const { receivedAt } = item;
  // The place of a quarantined event is counted nowhere, as a replayed event is.
  if (item.erased) return heads.other({ ...EMPTY, receivedAt, erased: true, replayed: item.isEntry });
  const { bytes, pos } = walker.whole(item, RECORD_HEADER + item.identityBytes + item.headBytes);
  try {
    const { id, type, handling } = titleAt(bytes, pos, item);
    if (handling === null) return heads.plain(id, type, receivedAt);
    const { only = null, replayId } = handling;
    heads.other({ id, type, receivedAt, only, replayed: replayId !== undefined, erased: false });
  } catch {
    heads.other({ ...EMPTY, receivedAt });
  }
}

/** Packs heads into columns one by one, without an object for each. */
export class HeadPacker {
  readonly #firstSeq: number;
  readonly #ids: string[] = [];
  readonly #types = new Map<string, number>();
  readonly #typeOf: Uint32Array;
  readonly #receivedAt: Float64Array;
  readonly #others: EventHead[] = [];

  /** @param most heads that it holds */
  constructor(firstSeq: number, most: number) {
    this.#firstSeq = firstSeq;
    this.#typeOf = new Uint32Array(most);
    this.#receivedAt = new Float64Array(most);
  }

  /** Of the next head. */
  get seq(): number {
    return this.#firstSeq + this.#ids.length;
  }

  get isFull(): boolean {
    return this.#ids.length === this.#typeOf.length;
  }

  /** Adds the head of an event that goes where the routes say. */
  plain(id: string, type: string, receivedAt: number): void {
    if (id.includes('\n')) this.other({ id, type, receivedAt, only: null, replayed: false, erased: false });
    else this.#push(id, type, receivedAt);
  }

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
    const index = this.#ids.length;
    this.#typeOf[index] = getOrMake(this.#types, type, () => this.#types.size);
    this.#receivedAt[index] = receivedAt;
    this.#ids.push(id);
  }
}

export function unpackHeads({ firstSeq, ids, types, typeOf, receivedAt, others }: HeadColumns): EventHead[] {
  if (typeOf.length === 0) return [];
  const heads: EventHead[] = ids.split('\n').map((id, index) => ({
    seq: firstSeq + index,
    id,
    type: types[typeOf[index] as number] as string,
    receivedAt: receivedAt[index] as number,
    only: null,
    replayed: false,
    erased: false,
  }));
  for (const head of others) heads[head.seq - firstSeq] = head;
  return heads;
}
