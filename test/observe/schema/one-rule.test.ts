import { expect, test } from 'vitest';
import { type Json, tableOf } from '../../tables/infer-support.ts';
import { eventOf, Learner } from './support.ts';

/** Plain words, none of which a format of the service has. */
const WORDS = Array.from('abcdefghijklmnopqrstuvwxyz').map((first) => `${first}orm`);
const word = (n: number): string => `${WORDS[n % WORDS.length]}_${WORDS[Math.floor(n / WORDS.length)]}`;

/** Members of one object, by the number of the document. */
type Members = (n: number) => Readonly<Record<string, Json>>;
const some = (names: readonly string[], value: (name: string) => Json): Readonly<Record<string, Json>> =>
  Object.fromEntries(names.map((name) => [name, value(name)]));

const GAUGES = WORDS.slice(0, 9);
const CASES: readonly (readonly [string, number, Members, 'fields' | 'map'])[] = [
  ['a name that is new each time', 60, (n) => ({ [word(n)]: n % 2 ? 1 : 'x' }), 'map'],
  ['the same object under other names', 30, (n) => ({ [word(n)]: { least: 1, most: 2 } }), 'map'],
  ['the same names each time', 30, () => some(GAUGES, () => 1), 'fields'],
  [
    'many members, each of which is in few of the first documents',
    12,
    (n) => ({ ...some(GAUGES, () => true), [word(n)]: n % 2 ? 1 : 'x', [word(n + 40)]: 'y' }),
    'fields',
  ],
  [
    'gauges of one form, of which each document has most',
    40,
    (n) => some(GAUGES.filter((_, at) => (n + at) % 3 > 0), () => ({ least: 1, most: 2 })), // prettier-ignore
    'fields',
  ],
];

test.each(CASES)('%s: the proposed table and the schema memory say the same', (_, count, members, wanted) => {
  const documents = Array.from({ length: count }, (_unused, n) => ({ id: `${n}`, held: members(n) }));
  const learner = new Learner();
  learner.see(...documents.map((document) => eventOf(document)));
  const remembered = learner.paths().some((path) => path.startsWith('/held/aorm'));
  const table = tableOf(documents);
  const proposed = table.columns.some(({ from }) => typeof from === 'string' && from.startsWith('held.aorm'));
  expect({ remembered, proposed }).toEqual({
    remembered: wanted === 'fields',
    proposed: wanted === 'fields',
  });
});
