import { hash } from 'node:crypto';
import { expect, it } from 'vitest';
import { COMPACTIONS } from '../../src/core/archive-segments.ts';
import { MillraceError } from '../../src/core/errors.ts';
import type { CompactPlace } from '../../src/archive/compact-place.ts';
import { Joiner } from '../../src/archive/joiner.ts';
import { signal } from '../sinks/support.ts';
import { line, openChain } from './chain-support.ts';
import { MemoryStore } from './memory-store.ts';

/** As `holdStore` has it, but that the lease is a variable, and that a removal for good can take its time. */
async function placeOn(
  store: MemoryStore,
  isOurs: () => boolean,
  beforeRemoval: () => Promise<void>,
): Promise<CompactPlace> {
  const chain = await openChain(store, null, { writer: COMPACTIONS, shared: true });
  return {
    store,
    put: async (file, bytes) => {
      const put = await store.putIfAbsent(file, { bytes });
      if (put.status === 'written') return put.version;
      throw new MillraceError('archive_in_use', file);
    },
    list: (one) => chain.append([one]),
    isListed: (file) =>
      Promise.resolve(
        [...store.objects].some(([key, b]) => key.includes(COMPACTIONS) && b.includes(`"file":"${file}"`)),
      ),
    remove: async (files, how) => {
      if (how?.forGood === true) await beforeRemoval();
      for (const file of files) await store.delete(file);
      return [];
    },
    check: () =>
      isOurs() ? Promise.resolve() : Promise.reject(new MillraceError('archive_in_use', 'taken over')),
    release: () => Promise.resolve(),
  };
}

it('who has lost its lease after it has put a file takes nothing away from who has taken over', async () => {
  const store = new MemoryStore();
  const group = ['a', 'b'].map((id) => {
    const bytes = Buffer.from(`{"id":"${id}"}\n`);
    store.objects.set(`dt=2026-11-21/${id}.ndjson`, bytes);
    const sha256 = hash('sha256', bytes, 'hex');
    return { ...line(`dt=2026-11-21/${id}.ndjson`), bytes: bytes.length, sha256, previous: '' };
  });
  let hasLease = true;
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const slow = await placeOn(
    store,
    () => hasLease,
    () => (begun.resolve(), go.promise),
  );
  const next = await placeOn(
    store,
    () => true,
    () => Promise.resolve(),
  );
  const put = (step: string): void => void (step === 'put' && (hasLease = false));
  const one = new Joiner(slow, { signal, onStep: put }).join(group).catch((error: Error) => error);
  // It has found that nobody has listed the file, and is about to remove it.
  await begun.promise;
  const other = new Joiner(next, { signal, onStep: () => {} }).join(group);
  await other;
  go.resolve();
  await one;
  const all = [...store.objects]
    .filter(([key]) => key.startsWith('dt='))
    .map(([, bytes]) => String(bytes))
    .join('');
  expect(all.includes('"a"') && all.includes('"b"')).toBe(true);
});
