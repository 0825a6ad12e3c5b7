import { expect } from 'vitest';
import type { ObjectStore } from '../../src/core/storage.ts';
import { isTransient } from '../../src/storage/attempts.ts';
import { bytes, keysOf, textOf } from './contract.ts';

/** Does it again for as long as the store says that it may succeed later. */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
  }
}

/** What a lane knows of one key: the text there, or null, and whether a failed write may have made another of it. */
interface Known {
  text: string | null;
  version: string;
  /** One that it had before; empty when there was none. */
  former: string;
  maybe: readonly (string | null)[];
}

/**
 * Writes, replaces, reads and removes at random under keys of its own, and compares every answer with what it
 * has noted itself. A write that fails leaves the state before or the one after, nothing else.
 */
export async function writeAlone(
  store: ObjectStore,
  prefix: string,
  random: () => number,
  isOver: () => boolean,
): Promise<void> {
  const keys = new Map<string, Known>();
  for (let step = 0; !isOver(); step += 1) {
    const key = `${prefix}${Math.floor(random() * 4)}`;
    const known = keys.get(key) ?? { text: null, version: '', former: '', maybe: [] };
    keys.set(key, known);
    await resolve(store, key, known);
    // Sometimes the same again: that is a write whose answer was lost, to the store.
    const text = random() < 0.2 && known.text !== null ? known.text : `${key} ${step}`;
    const choice = random();
    try {
      if (choice < 0.35) await put(store, key, known, text);
      else if (choice < 0.6) await replace(store, key, known, { text, stale: random() < 0.2 });
      else if (choice < 0.8) expect(await textOrNull(store, key)).toBe(known.text);
      else await remove(store, key, known, random() < 0.5);
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
  }
  for (const [key, known] of keys) await resolve(store, key, known);
  const there = [...keys].filter(([, { text }]) => text !== null).map(([key]) => key);
  expect(await patiently(() => keysOf(store, prefix))).toEqual(there.sort());
}

/** What is there after a write that failed must be what was there before it, or what it wrote. */
async function resolve(store: ObjectStore, key: string, known: Known): Promise<void> {
  if (known.maybe.length === 0) return;
  const found = await patiently(async () => ({
    text: await textOrNull(store, key),
    head: await store.head(key),
  }));
  expect([known.text, ...known.maybe], key).toContain(found.text);
  known.text = found.text;
  known.version = found.head?.version ?? '';
  known.maybe = [];
}

async function put(store: ObjectStore, key: string, known: Known, text: string): Promise<void> {
  const before = known.text;
  if (before === null) known.maybe = [text];
  const result = await store.putIfAbsent(key, bytes(text));
  known.maybe = [];
  expect(result.status, key).toBe(before === null || before === text ? 'written' : 'taken');
  if (result.status === 'written') Object.assign(known, { text, version: result.version });
  else expect(await textOrNull(store, key)).toBe(before);
}

async function replace(
  store: ObjectStore,
  key: string,
  known: Known,
  { text, stale }: { text: string; stale: boolean },
): Promise<void> {
  if (known.text === null) return;
  const isStale = stale && text !== known.text && known.former !== '' && known.former !== known.version;
  if (!isStale) known.maybe = [text];
  const result = await store.putIfMatch(key, isStale ? known.former : known.version, bytes(text));
  known.maybe = [];
  expect(result.status, key).toBe(isStale ? 'changed' : 'written');
  if (result.status !== 'written') return;
  Object.assign(known, { text, version: result.version, former: known.version });
}

async function remove(store: ObjectStore, key: string, known: Known, inVersion: boolean): Promise<void> {
  known.maybe = [null];
  const result = await store.delete(key, inVersion && known.text !== null ? known.version : undefined);
  expect(result, key).toBe('removed');
  Object.assign(known, { text: null, maybe: [] });
}

async function textOrNull(store: ObjectStore, key: string): Promise<string | null> {
  try {
    return await textOf(store, key);
  } catch (error) {
    if ((error as { fault?: string }).fault === 'missing') return null;
    throw error;
  }
}

/** Several write one numbered log, as those of a table do: each entry is one writer's, and stays as it is. */
export async function writeTogether(store: ObjectStore, isOver: () => boolean): Promise<void> {
  const entries: string[] = [];
  for (let number = 0; !isOver(); number += 1) {
    const key = `log/${String(number).padStart(6, '0')}`;
    const texts = ['one', 'two', 'three'].map((writer) => `${key} of ${writer}`);
    const results = await Promise.all(
      texts.map((text) => patiently(() => store.putIfAbsent(key, bytes(text))).then(({ status }) => status)),
    );
    expect(
      results.filter((status) => status === 'written'),
      key,
    ).toHaveLength(1);
    entries.push(texts[results.indexOf('written')] ?? '');
  }
  const there = await patiently(() => keysOf(store, 'log/'));
  expect(await Promise.all(there.map((key) => patiently(() => textOf(store, key))))).toEqual(entries);
}
