import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cutLines, type Line } from '../../src/lib/lines.ts';

const line = fc.string({ maxLength: 6, unit: fc.constantFrom('a', 'b', '}', 'é') });

/** The text in pieces of these sizes, the rest as one. */
async function* inPieces(text: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (const size of sizes) {
    yield text.subarray(at, at + size);
    at += size;
    await Promise.resolve();
  }
  yield text.subarray(at);
}

test('lines that are not needed are left out, and counted: numbers, offsets and all others stay', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 20 }),
      fc.array(fc.integer({ min: 0, max: 15 }), { maxLength: 10 }),
      fc.constantFrom('', 'a', 'b'),
      fc.boolean(),
      async (lines, sizes, unneeded, isOverwritten) => {
        const text = Buffer.from(lines.join('\n'));
        const isNeeded = (one: string): boolean => unneeded === '' || !one.startsWith(unneeded);
        const passesOver = (bytes: Buffer, from: number, to: number): boolean =>
          !isNeeded(bytes.toString('utf8', from, to));
        const options = {
          ...(unneeded === '' ? {} : { passesOver }),
          // Once its lines were taken, a chunk is used for something else.
          ...(isOverwritten ? { onTaken: (chunk: Buffer) => void chunk.fill(0) } : {}),
        };
        const pieces = cutLines(inPieces(text, sizes), options);
        const cut: Line[] = [];
        let whole = 0;
        for await (const some of pieces) {
          cut.push(...some.map((one) => ({ ...one, bytes: one.bytes && Buffer.from(one.bytes) })));
          whole = some.at(-1)?.number ?? whole;
        }
        const all = lines.at(-1) === '' || lines.length === 0 ? lines.slice(0, -1) : lines;
        expect(whole).toBe(all.length);
        const seen = new Map(cut.map((one) => [one.number, one]));
        expect(seen.size).toBe(cut.length);
        let end = 0;
        for (const [at, expected] of all.entries()) {
          const ended = at < lines.length - 1;
          end += Buffer.byteLength(expected) + (ended ? 1 : 0);
          const found = seen.get(at + 1);
          if (found === undefined) expect(isNeeded(expected)).toBe(false);
          else
            expect({ ...found, bytes: found.bytes?.toString() }).toEqual({
              number: at + 1,
              bytes: expected,
              end,
              ended,
            });
        }
      },
    ),
    { numRuns: 500 },
  );
});

test('of the lines of one chunk that are not needed, only the last is there', async () => {
  const text = Buffer.from('a\n'.repeat(1000));
  const numbers: number[] = [];
  for await (const lines of cutLines(inPieces(text, [1000]), { passesOver: () => true }))
    numbers.push(...lines.map(({ number }) => number));
  expect(numbers).toEqual([500, 1000]);
});
