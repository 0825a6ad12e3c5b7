import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { TextGroups } from '../../src/lib/text-groups.ts';
import { temporaryFolder } from '../support/folders.ts';

const signal = new AbortController().signal;

type Added = readonly (readonly [text: string, number: number])[];

/** Numbers by text, as they are given back; a text that comes in two groups fails. */
async function groupsOf(groups: TextGroups): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>();
  let numbers: number[] = [];
  await groups.visit(
    {
      add: (number) => numbers.push(number),
      end: (text) => {
        expect(found.has(text.toString())).toBe(false);
        found.set(text.toString(), numbers);
        numbers = [];
      },
    },
    signal,
  );
  expect(numbers).toEqual([]);
  return found;
}

function expected(added: Added): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  for (const [text, number] of added) groups.set(text, [...(groups.get(text) ?? []), number]);
  return groups;
}

const texts = fc.oneof(
  fc.constantFrom('', 'a', 'b', '\0', '\0\0', 'é', 'msg_1', 'msg_2'),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ unit: 'grapheme', minLength: 40, maxLength: 80 }),
);
const additions = fc.array(fc.tuple(texts, fc.nat(0xff_ff_ff_ff)), { maxLength: 120 });

test('equal texts come back together, their numbers in the order they were added, however little memory holds', async () => {
  await fc.assert(
    fc.asyncProperty(additions, fc.integer({ min: 1, max: 150 }), async (added, mostTexts) => {
      const groups = new TextGroups(2 ** 20, mostTexts);
      try {
        for (const [text, number] of added) groups.add(text, number);
        expect(await groupsOf(groups)).toEqual(expected(added));
      } finally {
        groups.close();
      }
    }),
  );
});

test('texts of one hash are told apart', async () => {
  // Two 32-bit hashes are alike for one pair in four thousand million: of 300,000 texts some ten pairs are.
  const added = Array.from({ length: 600_000 }, (_, n) => [`msg_${n % 300_000}`, n] as const);
  const groups = new TextGroups();
  onTestFinished(() => groups.close());
  for (const [text, number] of added) groups.add(text, number);
  let wrong = 0;
  let numbers: number[] = [];
  let count = 0;
  await groups.visit(
    {
      add: (number) => numbers.push(number),
      end: (text) => {
        const first = Number(text.toString().slice('msg_'.length));
        if (numbers.length !== 2 || numbers[0] !== first || numbers[1] !== first + 300_000) wrong += 1;
        numbers = [];
        count += 1;
      },
    },
    signal,
  );
  expect([count, wrong]).toEqual([300_000, 0]);
});

test('a text longer than memory and than what is read at a time comes back whole', async () => {
  const long = 'msg_'.repeat(50_000);
  const groups = new TextGroups(64 * 1024, 2);
  onTestFinished(() => groups.close());
  for (const [n, text] of ['a', long, 'b', `${long}é`, long, 'a'].entries()) groups.add(text, n);
  expect(await groupsOf(groups)).toEqual(
    new Map([
      ['a', [0, 5]],
      ['b', [2]],
      [long, [1, 4]],
      [`${long}é`, [3]],
    ]),
  );
});

test('what goes to disk has no name there, and nothing is left', async () => {
  const folder = await temporaryFolder();
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  const groups = new TextGroups(64 * 1024, 1);
  for (const text of ['a', 'b', 'a']) groups.add(text, 1);
  expect(readdirSync(folder)).toEqual([]);
  expect((await groupsOf(groups)).size).toBe(2);
  groups.close();
  vi.stubEnv('TMPDIR', `${folder}/missing`);
  const lost = new TextGroups(64 * 1024, 1);
  lost.add('a', 1);
  expect(() => lost.add('b', 1)).toThrow(`${folder}/missing`);
});

test('an abort ends the visit', async () => {
  const groups = new TextGroups();
  for (let n = 0; n < 100_000; n += 1) groups.add(String(n), n);
  const stop = new AbortController();
  let seen = 0;
  const end = (): void => {
    seen += 1;
    if (seen === 10) stop.abort(new Error('made-up stop'));
  };
  await expect(groups.visit({ add: () => undefined, end }, stop.signal)).rejects.toThrow('made-up stop');
  expect(seen).toBeLessThan(100_000);
  groups.close();
});
