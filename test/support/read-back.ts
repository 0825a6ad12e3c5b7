import { readdir } from 'node:fs/promises';
import { expect } from 'vitest';
import { readArchive, type ReadOptions } from '../../src/archive/read.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import type { ArchiveRecord } from '../../src/core/archive.ts';

export interface ReadBack {
  readonly file: string;
  readonly record: ArchiveRecord;
  readonly body: Buffer;
}

/** Everything an archive's files hold, by id, one entry for each time it stands there. */
export async function readBack(archive: string, options: ReadOptions = {}): Promise<Map<string, ReadBack[]>> {
  const found = new Map<string, ReadBack[]>();
  for await (const item of readArchive(archive, options)) {
    if (item.kind === 'problem') throw new Error(`${item.file}:${item.line ?? ''}: ${item.reason}`);
    const { file, record } = item;
    const copy = { file, record, body: Buffer.from(item.body) };
    const known = found.get(record.id);
    if (known === undefined) found.set(record.id, [copy]);
    else known.push(copy);
  }
  return found;
}

/** Holds that a stopped receiver left a whole archive: nothing unfinished, and every file as the manifest says. */
export async function expectWhole(archive: string): Promise<void> {
  const left = await readdir(archive, { recursive: true });
  expect(left.filter((name) => name.endsWith('.part') || name.endsWith('.tmp'))).toEqual([]);
  const { differences, notes } = await verifyArchive(archive);
  expect({ differences, notes }).toEqual({ differences: [], notes: [] });
}

/**
 * Conservation: all that was acknowledged is in the archive, byte for byte, and nothing that was never sent.
 * @param acknowledged body by id
 */
export function expectConserved(
  found: ReadonlyMap<string, readonly ReadBack[]>,
  acknowledged: ReadonlyMap<string, Buffer>,
  sent: { has(id: string): boolean } = acknowledged,
): void {
  const wrong: string[] = [];
  for (const [id, body] of acknowledged) {
    const copies = found.get(id) ?? [];
    if (copies.length === 0) wrong.push(`${id}: acknowledged, not in the archive`);
    else if (copies.some((copy) => !copy.body.equals(body))) wrong.push(`${id}: other bytes than were sent`);
  }
  for (const id of found.keys()) if (!sent.has(id)) wrong.push(`${id}: never sent`);
  expect(wrong.slice(0, 20), `of ${acknowledged.size} acknowledged`).toEqual([]);
}

export function expectOnce(found: ReadonlyMap<string, readonly ReadBack[]>): void {
  const repeated = [...found].filter(([, copies]) => copies.length > 1).map(([id]) => id);
  expect(repeated.slice(0, 20), `more than once in the archive, of ${found.size}`).toEqual([]);
}
