import type { EventHead } from '../core/journal.ts';

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

/** @param heads without a hole between them */
export function packHeads(heads: readonly EventHead[]): HeadColumns {
  const ids: string[] = [];
  const types = new Map<string, number>();
  const typeOf = new Uint32Array(heads.length);
  const receivedAt = new Float64Array(heads.length);
  const others: EventHead[] = [];
  for (const head of heads) {
    const place = ids.length;
    const isPlain = head.only === null && !head.replayed && !head.erased && !head.id.includes('\n');
    if (!isPlain) others.push(head);
    let type = types.get(head.type);
    if (type === undefined) types.set(head.type, (type = types.size));
    typeOf[place] = type;
    receivedAt[place] = head.receivedAt;
    ids.push(isPlain ? head.id : '');
  }
  const firstSeq = heads[0]?.seq ?? 0;
  return { firstSeq, ids: ids.join('\n'), types: [...types.keys()], typeOf, receivedAt, others };
}

export function unpackHeads({ firstSeq, ids, types, typeOf, receivedAt, others }: HeadColumns): EventHead[] {
  if (typeOf.length === 0) return [];
  const plain = { only: null, replayed: false, erased: false };
  const heads: EventHead[] = ids.split('\n').map((id, place) => ({
    seq: firstSeq + place,
    id,
    type: types[typeOf[place] as number] as string,
    receivedAt: receivedAt[place] as number,
    ...plain,
  }));
  for (const head of others) heads[head.seq - firstSeq] = head;
  return heads;
}
