import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { hash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import type { ManifestChain } from '../../src/archive/manifest-chain.ts';
import { chainOf, parseSegmentKey } from '../../src/archive/segments.ts';
import type { ManifestHead, Proof } from '../../src/core/proof.ts';
import { SILENT } from '../../src/core/sink.ts';
import { tempFolder } from '../sinks/support.ts';
import { runCount } from '../support/run-count.ts';
import { chainIn, key, line, openChain } from './chain-support.ts';
import { MemoryStore } from './memory-store.ts';
import { newSigner } from './store-archive.ts';

/** The files in the chain, in its order; fails for a chain that is not whole. Without the product's reader. */
function filesIn(store: MemoryStore): string[] {
  const segments = [...store.objects.keys()].flatMap((name) => {
    const segment = parseSegmentKey(name);
    return segment === null ? [] : [{ ...segment, name }];
  });
  const { chain, gaps } = chainOf(segments);
  expect(gaps).toEqual([]);
  let previous = hash('sha256', '', 'hex');
  const files: string[] = [];
  for (const { name, first, last } of chain) {
    const lines = (store.objects.get(name) ?? Buffer.alloc(0)).toString().split('\n').slice(0, -1);
    expect(lines).toHaveLength(last - first + 1);
    for (const text of lines) {
      const entry = JSON.parse(text) as { file: string; previous: string };
      expect(entry.previous).toBe(previous);
      previous = hash('sha256', text, 'hex');
      files.push(entry.file);
    }
  }
  return files;
}

it('joins many small objects, and keeps the chain whole when it was killed while it did', async () => {
  const store = new MemoryStore();
  const chain = await openChain(store);
  for (let at = 0; at < 99; at += 1) await chain.append([line(`f${at}`)]);
  expect(store.objects.size).toBe(99);
  const before = new Map(store.objects);
  await chain.append([line('f99')]);
  await vi.waitUntil(() => store.objects.size === 1);
  expect([...store.objects.keys()]).toEqual([key(1, 100)]);
  // As a kill leaves it, between two of the removals.
  for (const [name, bytes] of [...before].slice(40)) store.objects.set(name, bytes);
  const files = Array.from({ length: 100 }, (_, at) => `f${at}`);
  expect(filesIn(store)).toEqual(files);
  const next = await openChain(store);
  expect(store.objects.size).toBe(1);
  await next.append([line('next')]);
  expect(filesIn(store)).toEqual([...files, 'next']);
});

it('an object that cannot be joined is no reason to stop', async () => {
  const store = new MemoryStore();
  store.fault = (name) => (name === key(1, 100) ? 'before' : null);
  const chain = await openChain(store);
  for (let at = 0; at < 250; at += 1) await chain.append([line(`f${at}`)]);
  await vi.waitUntil(() => store.objects.size < 60);
  expect(filesIn(store)).toHaveLength(250);
});

it('lines handed in together share an object, and a thousand fill one', async () => {
  const store = new MemoryStore();
  const chain = await openChain(store);
  await Promise.all(Array.from({ length: 2500 }, (_, at) => chain.append([line(`f${at}`)])));
  expect(store.objects.size).toBeLessThan(6);
  expect(new Set(filesIn(store)).size).toBe(2500);
});

it('takes a head for lost only when no segment holds it, however many were put after it', async () => {
  const said: string[] = [];
  const heads = {
    noted: null as ManifestHead | null,
    fails: false,
    of: () => heads.noted,
    note: (_root: string, head: ManifestHead) => {
      if (heads.fails) return Promise.reject(new Error('full'));
      heads.noted = head;
      return Promise.resolve();
    },
  };
  const error = (_fields: unknown, message?: string): void => void said.push(String(message));
  const signer = newSigner();
  const proof = () => Promise.resolve({ signer, heads, logHead: () => null } as unknown as Proof);
  const store = new MemoryStore();
  const open = () => openChain(store, null, { log: { ...SILENT, error }, proof });
  const chain = await open();
  await chain.append([line('a')]);
  heads.fails = true;
  await chain.append([line('b')]);
  await chain.append([line('c')]);
  await open();
  expect(said).toEqual([]);
  heads.fails = false;
  await chain.append([line('d')]);
  store.objects.delete(key(4));
  await open();
  expect(said).toEqual([expect.stringContaining('does not hold its noted head')]);
});

type Step =
  | {
      readonly kind: 'append';
      readonly count: number;
      readonly faults: readonly ('before' | 'after' | null)[];
    }
  | { readonly kind: 'kill' };

const fault = fc.constantFrom('before', 'after', null, null);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      count: fc.integer({ min: 1, max: 4 }),
      faults: fc.array(fault, { maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'kill' as const }) },
);

it('whatever fails, is lost on the way back, or is killed: each line that was asked for is there once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const store = new MemoryStore();
      const folder = mkdtempSync(join(tmpdir(), 'millrace-'));
      try {
        let chain = chainIn(store, folder);
        await chain.open();
        const wanted: string[] = [];
        const open = new Set<string>();
        const restart = async (): Promise<void> => {
          store.fault = () => null;
          chain = chainIn(store, folder);
          for (const file of await chain.open()) open.delete(file);
        };
        for (const each of steps) {
          if (each.kind === 'kill') await restart();
          else {
            for (let n = 0; n < each.count; n += 1) open.add(`f${wanted.push(`f${wanted.length}`) - 1}`);
            const faults = [...each.faults];
            store.fault = () => faults.shift() ?? null;
            await Promise.allSettled(
              [...open].map(async (file) => {
                await chain.append([line(file)]);
                open.delete(file);
              }),
            );
          }
        }
        store.fault = () => null;
        for (const file of open) await chain.append([line(file)]);
        expect(filesIn(store).toSorted()).toEqual(wanted.toSorted());
        for (const file of wanted) await chain.forget(file);
        expect(readdirSync(folder)).toEqual(wanted.length === 0 ? [] : ['newest-segment']);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
    { numRuns: runCount({ quick: 25, long: 125 }) },
  );
});

it('lists a file once when a full disk, or a folder that is gone, kept its segment from being kept, and a kill followed', async () => {
  const [store, folder] = [new MemoryStore(), tempFolder()];
  const first = await openChain(store, folder);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  await expect(first.append([line('a')])).rejects.toThrow('ENOTDIR');
  expect(store.objects.size).toBe(0);
  rmSync(folder);
  mkdirSync(folder);
  await first.append([line('a')]);
  expect(await chainIn(store, folder).open()).toEqual(new Set(['a']));
  expect(filesIn(store)).toEqual(['a']);
});

it('forgets a segment when all of its files are dealt with, and not before', async () => {
  const folder = tempFolder();
  const chain = await openChain(new MemoryStore(), folder);
  await chain.append([line('a'), line('b')]);
  await chain.forget('a');
  expect(readdirSync(folder)).toHaveLength(2);
  await chain.forget('b');
  expect(readdirSync(folder)).toEqual(['newest-segment']);
});

async function append(chain: ManifestChain, ...files: string[]): Promise<void> {
  await chain.append(files.map(line));
  for (const file of files) await chain.forget(file);
}

it('does not fork its chain where a listing is late, before it was joined or after', async () => {
  const store = new MemoryStore();
  const folder = tempFolder();
  const first = await openChain(store, folder);
  await append(first, 'a');
  const shown = new Map(store.objects);
  // One object with two lines: a line alone would be another object, which nothing refuses.
  await append(first, 'b', 'c');
  const openLate = async (): Promise<void> => {
    const late = new MemoryStore();
    for (const [name, bytes] of shown) late.objects.set(name, bytes);
    const list = vi.spyOn(store, 'list').mockImplementation((prefix) => late.list(prefix));
    const before = new Map(store.objects);
    await expect(chainIn(store, folder).open()).rejects.toMatchObject({ fault: 'unreachable' });
    expect(store.objects).toEqual(before);
    list.mockRestore();
  };
  await openLate();
  const second = await openChain(store, folder);
  for (let at = 0; at < 98; at += 1) await append(second, `f${at}`);
  await vi.waitUntil(() => store.objects.size === 1);
  shown.clear();
  await openLate();
  // What was removed is no reason to wait: it does not come.
  store.objects.clear();
  const third = await openChain(store, folder);
  await append(third, 'again');
  expect(filesIn(store)).toEqual(['again']);
});

it('removes nothing of a chain that two have written, from copies of one folder', async () => {
  const store = new MemoryStore();
  const [one, other] = [chainIn(store), chainIn(store)];
  await Promise.all([one.open(), other.open()]);
  await one.append([line('a')]);
  await other.append([line('b'), line('c')]);
  const before = new Map(store.objects);
  expect(before.size).toBe(2);
  await chainIn(store).open();
  expect(store.objects).toEqual(before);
});

it('continues after lines that another process has written', async () => {
  const store = new MemoryStore();
  const [one, other] = [chainIn(store), chainIn(store)];
  await Promise.all([one.open(), other.open()]);
  await one.append([line('a')]);
  await other.append([line('b')]);
  await one.append([line('c')]);
  expect(filesIn(store)).toEqual(['a', 'b', 'c']);
});

it('waits for a listing that does not show yet what is there, instead of asking again and again', async () => {
  const store = new MemoryStore();
  const first = await openChain(store);
  await first.append([line('one')]);
  const late = chainIn(store);
  const list = vi.spyOn(store, 'list').mockImplementation(async function* () {});
  await late.open();
  await expect(late.append([line('two')])).rejects.toMatchObject({ fault: 'unreachable' });
  expect(list).toHaveBeenCalledTimes(2);
  list.mockRestore();
  await expect(late.append([line('two')])).resolves.toBeUndefined();
  expect(filesIn(store)).toEqual(['one', 'two']);
});
