import { describe, expect, it } from 'vitest';
import type { EventHead } from '../../src/core/journal.ts';
import { HeadPacker, unpackHeads, type HeadColumns } from '../../src/journal/segments/heads.ts';

function packed(heads: readonly EventHead[]): HeadColumns {
  const packer = new HeadPacker(heads[0]?.seq ?? 0, heads.length);
  for (const { seq, ...head } of heads) {
    const { id, type, receivedAt, only, replayed, erased } = head;
    expect([packer.seq, packer.isFull]).toEqual([seq, false]);
    if (only === null && !replayed && !erased) packer.plain(id, type, receivedAt);
    else packer.other(head);
  }
  expect(packer.isFull).toBe(true);
  return packer.pack();
}

describe('heads on their way between the threads', () => {
  const plain = { type: 'daily.data.meal.created', only: null, replayed: false, erased: false };
  const heads: readonly EventHead[] = [
    { ...plain, seq: 7, id: 'msg_1', receivedAt: 1.5 },
    { ...plain, seq: 8, id: '', type: '', receivedAt: 0, only: [], erased: true },
    { ...plain, seq: 9, id: 'msg_2', type: 'ünïcode', receivedAt: 1_700_000_000_000 },
    { ...plain, seq: 10, id: 'two\nlines', receivedAt: 3 },
    { ...plain, seq: 11, id: 'msg_1', receivedAt: 4, replayed: true },
    { ...plain, seq: 12, id: 'msg_3', receivedAt: 5, only: ['archive:lab'] },
    { ...plain, seq: 13, id: '', receivedAt: 6 },
  ];

  it('are what they were', () => {
    for (let from = 0; from <= heads.length; from += 1)
      for (let to = from; to <= heads.length; to += 1) {
        const some = heads.slice(from, to);
        expect(unpackHeads(structuredClone(packed(some)))).toEqual(some);
      }
  });
});
