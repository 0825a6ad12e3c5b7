import { hash } from 'node:crypto';
import { expect, it } from 'vitest';
import { COMPACTIONS } from '../../src/core/archive-segments.ts';
import { MillraceError } from '../../src/core/errors.ts';
import type { CompactPlace } from '../../src/archive/compact-place.ts';
import { Joiner } from '../../src/archive/joiner.ts';
import { ManifestChain } from '../../src/archive/manifest-chain.ts';
import { MemoryStore } from './memory-store.ts';

const log = { info: () => {}, warn: () => {}, error: () => {} };
const { signal } = new AbortController();

/** As `holdStore` has it, but that the lease is a variable, and that a removal for good can take its time. */
async function placeOn(
  store: MemoryStore,
  isOurs: () => boolean,
  beforeRemoval: () => Promise<void>,
): Promise<CompactPlace> {
  const chain = new ManifestChain({ store, writer: COMPACTIONS, shared: true, log, folder: null, signal });
  await chain.open();
  return {
    store,
    put: async (file, bytes) => {
      const put = await store.putIfAbsent(file, { bytes });
      if (put.status === 'written') return put.version;
      throw new MillraceError('archive_in_use', file);
    },
    list: (line) => chain.append([line]),
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
    const at = '2026-11-21T00:00:00.000Z';
    return {
      file: `dt=2026-11-21/${id}.ndjson`,
      records: 1,
      bytes: bytes.length,
      sha256: hash('sha256', bytes, 'hex'),
      first_received_at: at,
      last_received_at: at,
      types: {},
      previous: '',
    };
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
