import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { EventIds } from '../../../src/replay/reconcile/event-ids.ts';
import { signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';

const AT = '2026-11-21T10:00:00.000Z';

/** What is counted when the journal has these ids as settled, and the files have those. */
async function counted(held: readonly string[], found: readonly string[]) {
  const ids = new EventIds(null);
  try {
    const take = ids.finder('files');
    for (const id of found) take(id, AT);
    const due = ids.due(false, [['files', 'settled']]);
    for (const id of held) ids.event(id, due, Date.parse(AT));
    return (await ids.count(['files'], signal)).sinks.get('files');
  } finally {
    ids.close();
  }
}

const inByteOrder = (ids: readonly string[]): string[] =>
  ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

const ids = fc.uniqueArray(
  fc.oneof(
    fc.constantFrom('', 'a', 'A', 'b', '\0', '\0\0', 'é', 'e\u0301', 'msg_1', 'msg_2', 'msg_'.repeat(50_000)),
    fc.string({ unit: 'grapheme', maxLength: 12 }),
  ),
);

test('ids are the same only when all their bytes are, and the first are named', async () => {
  await fc.assert(
    fc.asyncProperty(ids, ids, async (held, found) => {
      const both = held.filter((id) => found.includes(id));
      expect(await counted(held, found)).toMatchObject({
        found: both.length,
        missing: inByteOrder(held.filter((id) => !found.includes(id))).slice(0, 20),
        alone: inByteOrder(found.filter((id) => !held.includes(id))).slice(0, 20),
      });
    }),
  );
});

/** So long that 200,000 are larger than the cache of SQLite. */
const idOf = (n: number): string => String(n).padStart(80, '0');

test('more ids than memory holds are compared in a file without a name', async () => {
  const folder = await temporaryFolder();
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  const held = Array.from({ length: 100_000 }, (_, n) => idOf((n * 7919) % 100_000));
  const counting = counted(held, held.slice(1).toReversed());
  expect(readdirSync(folder)).toEqual([]);
  expect(await counting).toMatchObject({ found: 99_999, settled: 1, missing: [idOf(0)], alone: [] });
  expect(readdirSync(folder)).toEqual([]);
});

test('an abort ends the counting', async () => {
  const many = new EventIds(null);
  onTestFinished(() => many.close());
  for (let n = 0; n < 50_000; n += 1) many.late(String(n));
  const stop = new AbortController();
  setImmediate(() => stop.abort(new Error('made-up stop')));
  await expect(many.count([], stop.signal)).rejects.toThrow('made-up stop');
});
