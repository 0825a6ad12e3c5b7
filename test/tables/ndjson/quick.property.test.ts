import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { QuickItems } from '../../../src/tables/ndjson/quick/quick-items.ts';
import { planRow } from '../../../src/tables/shape/plan.ts';
import type { TableDefinition } from '../../../src/tables/definition.ts';
import { TABLES } from '../../../src/tables/tables.ts';
import type { RowReject } from '../../../src/tables/shape/reject.ts';
import { linesOf, type RowLines } from '../../../src/tables/shape/row-lines.ts';
import { Shaper } from '../../../src/tables/shape/shape.ts';
import { MEALS } from '../../../src/tables/definitions/meals.ts';
import { anyMeal } from './documents.ts';
import { referenceRows } from './reference.ts';
import { chunked, shapeAll } from './support.ts';
import { usualDocument, usualMeal } from './usual.ts';
import { runCount } from '../../support/run-count.ts';

const LONGEST = 100_000;

interface Quick {
  /** Bytes of the items that were shaped. */
  readonly taken: Buffer;
  readonly elements: number;
  readonly rows: Record<string, string>;
}

function newItems(): QuickItems {
  const items = QuickItems.of(planRow(MEALS), ['meals', 'meal_items']);
  if (items === null) throw new Error('this machine has no WebAssembly with SIMD');
  return items;
}

/** Shapes the items of an array, from the first on. */
function shapeQuick(items: QuickItems, array: Buffer): Quick {
  items.fill(array);
  const end = items.shape(1, LONGEST);
  const rows: Record<string, string> = { meals: '', meal_items: '' };
  items.takeRows((ready) => (rows[ready.table] += Buffer.from(ready.rows).toString()));
  return { taken: array.subarray(1, Math.max(end, 1)), elements: end > 0 ? items.elements : 0, rows };
}

const NOTHING = Array.from({ length: 4 }, () => Buffer.alloc(0));

/** A text in which something is cut out, put in or repeated; often still JSON, and sometimes still UTF-8. */
const damaged = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: usualMeal }, anyMeal),
    fc.nat(),
    fc.constantFrom(0, 0, 0, 1, 2, 5),
    fc.nat(40),
    fc
      .constantFrom(' ', ...'" { } [ ] : , \\ \\u0041 \\/ 0 - . e9 \0 \n'.split(' '))
      .map((text) => Buffer.from(text))
      .chain((bytes) => fc.constantFrom(bytes, bytes, Buffer.of(0xff), Buffer.of(0xc3), ...NOTHING)),
  )
  // An item begins with its brace: the scanner looks for that.
  .map(([meal, at, cut, repeated, inserted]) => {
    const bytes = Buffer.from(meal);
    const place = 1 + (at % (bytes.length - 1));
    const again = repeated > 30 ? bytes.subarray(place, place + repeated) : Buffer.alloc(0);
    return Buffer.concat([bytes.subarray(0, place), inserted, again, bytes.subarray(place + cut)]);
  });

/** Times that do not exist, or that a column does not hold. */
const TIMES = `
  1900-02-29 2026-02-30 2026-04-31 2026-13-01
  0000-01-01 2026-05-01T24:00:00Z 2026-05-01T08:60:00 2026-05-01T08:00:00.
  2026-05-01T08:00:00.1234567 2026-05-01T08:00 2026-05-01T08:00:00+15:00 2026-05-01T08:00:00+05:60
  2026-05-01x08:00:00
`
  .trim()
  .split(/\s+/);

/** Members of a meal with something unusual, or that are not JSON. */
const MEMBERS = String.raw`
  "source_id":1.5   "source_id":1e2   "source_id":01   "source_id":-   "source_id":1234567890123456789
  "source_id":"7"   "energy":{"value":1.}   "energy":{"value":1E5}   "energy":{"value":+1}
  "energy":{"value":true}   "energy":[]   "energy":"x"   "name":7   "name":"\u0041"   "name":"\/"
  "name":"\x"   "name":"a<TAB>b"   "name":nul   "name":tru   "id":"b"   "name":"a","name":"b"
  "energy":{},"energy":{"value":1}   "data":{"Tea":{}},"data":{}   "data":{"Tea":{"macros":{},"macros":null}}
  "made_up":1   "nam":"a"   "names":"a"   "calendar_date":"2026-05-01T08:00:00"   "data":[]
  "data":{"Tea":[]}   "data":{"Tea":1}   "data":{"Tea":{},}   "data":{"Tea"}
  "data":{"Tea":{"energy":{"value":1}}   "name":"a",   "name" "a"   "name":"a";"user_id":"b"
  "data":{"a":{};"b":{}}   "data":{"a":{}]   "user_id":"ÿ"
`
  .trim()
  .split(/\s{2,}/)
  .map((member) => member.replace('<TAB>', '\t'));

interface Outcome {
  readonly elements: number;
  readonly rows: Readonly<Record<string, string>>;
  readonly met: unknown;
}

function refuse({ reason }: RowReject): never {
  return expect.unreachable(reason);
}

/** Shapes documents one after the other, and as items of an array. */
function bothWays(
  definition: TableDefinition,
  documents: readonly string[],
  options: { readonly tables: readonly string[]; readonly given?: Readonly<Record<string, string>> },
): { plain: Outcome; quick: Outcome } {
  const { tables, given = {} } = options;
  const outcome = (shape: (shaper: Shaper, lines: ReadonlyMap<string, RowLines>) => number): Outcome => {
    const entry = { definition, document: definition };
    const targets = linesOf(
      [definition, ...(definition.nested ?? []).map(({ table }) => table)].filter(({ name }) =>
        tables.includes(name),
      ),
    );
    const shaper = new Shaper(entry, { tables, targets, given, onReject: refuse });
    const elements = shape(shaper, targets);
    const rows = [...targets].map(([table, lines]) => [table, lines.view().toString()]);
    return { elements, met: shaper.met(), rows: Object.fromEntries(rows) as Outcome['rows'] };
  };
  return {
    plain: outcome((shaper) => documents.filter((text) => shaper.shape(Buffer.from(text))).length),
    quick: outcome((shaper, lines) => {
      const items = QuickItems.of(planRow(definition), tables, given)!;
      const array = Buffer.from(`[${documents.join(',')}]`);
      items.fill(array);
      let elements = 0;
      for (let at = 1; at < array.length - 1;) {
        const end = items.shape(at, LONGEST);
        if (end <= at) return elements;
        elements += items.elements;
        items.takeRows((ready) => {
          lines.get(ready.table)?.append(ready.rows, ready.count);
          shaper.adopt(ready);
        });
        at = end + 1;
      }
      return elements;
    }),
  };
}

describe('the quick way shapes', () => {
  test('every usual meal, as the plain way does', async () => {
    const items = newItems();
    await fc.assert(
      fc.asyncProperty(fc.array(usualMeal, { minLength: 1, maxLength: 3 }), async (meals) => {
        const { rows, rejects } = await referenceRows(`[${meals.join(',')}]`);
        expect(rejects).toEqual([]);
        const quick = shapeQuick(items, Buffer.from(`[${meals.join(' ,\n')} ]`));
        expect({ elements: quick.elements, rows: quick.rows }).toEqual({ elements: meals.length, rows });
      }),
      { numRuns: runCount({ quick: 60, long: 300 }) },
    );
  });

  test('of other meals all or nothing, and nothing of what is not JSON', async () => {
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(damaged, async (meal) => {
        const quick = shapeQuick(newItems(), Buffer.concat([Buffer.from('['), meal, Buffer.from(',')]));
        if (quick.elements === 0) {
          expect(quick.rows).toEqual({ meals: '', meal_items: '' });
          return;
        }
        taken += 1;
        const text = `[${new TextDecoder('utf-8', { fatal: true }).decode(quick.taken)}]`;
        expect(JSON.parse(text)).toHaveLength(quick.elements);
        const { rows, rejects } = await referenceRows(text);
        expect({ rows: quick.rows, rejects: [] }).toEqual({ rows, rejects });
      }),
      { numRuns: runCount({ quick: 300, long: 1500 }) },
    );
    expect(taken).toBeGreaterThan(15);
  });

  test.each(TIMES)('no meal with the time %j', (time) => {
    expect(shapeQuick(newItems(), Buffer.from(`[{"id":"a","timestamp":"${time}"}]`)).elements).toBe(0);
  });

  test.each(MEMBERS)('no meal with %s', (member) => {
    const array = Buffer.from(`[{"id":"a",${member}}]`, member.includes('ÿ') ? 'latin1' : 'utf8');
    expect(shapeQuick(newItems(), array).elements).toBe(0);
  });

  test.each(['{}', '{"id":""}', '{"id":null}', '{"name":"a"}'])('no meal without an id: %s', (meal) => {
    expect(shapeQuick(newItems(), Buffer.from(`[${meal}]`)).elements).toBe(0);
  });

  test('and leaves the rest of a text to others, in order', async () => {
    const [usual, odd] = [usualMeal, anyMeal].map((meal, seed) => fc.sample(meal, { numRuns: 300, seed }));
    const meals = usual!.flatMap((meal, n) => [meal, ...(n % 3 === 0 ? [odd![n] ?? meal] : [])]);
    const text = `{"meals":[${meals.join(',')}]}`;
    const { rows } = await referenceRows(text);
    for (const sizes of [[200_000], [65_536, 1000], [1e6]])
      expect((await shapeAll(chunked(text, sizes))).rows).toEqual(rows);
  });

  const documents = [...TABLES.values()].filter(({ definition, document }) => {
    const isOwn = definition === document && document.unfold === undefined;
    return isOwn && QuickItems.of(planRow(document), [document.name]) !== null;
  });
  test.each(documents)('documents of $document.name, as one after the other are', ({ document }) => {
    const tables = TABLES.withNested(document.name);
    const texts = fc.sample(usualDocument(document), { numRuns: 40, seed: 1 });
    const { plain, quick } = bothWays(document, texts, { tables });
    expect(quick).toEqual(plain);
    expect(quick.elements).toBe(texts.length);
  });

  test.each([[['meals', 'meal_items']], [['meals']], [['meal_items']]])(
    'with what is given, %j',
    (tables) => {
      const meals = fc.sample(usualMeal, { numRuns: 60, seed: 2 });
      const given = { user_id: 'given', _loaded_at: '2026-01-01T00:00:00Z' };
      const { plain, quick } = bothWays(MEALS, meals, { tables, given });
      expect(quick).toEqual(plain);
    },
  );

  test('more rows than there is room for, a part at a time', () => {
    const foods = Array.from({ length: 200 }, (_, n) => `"${n}":{}`).join(',');
    const meal = `{"id":"a","user_id":"${'u'.repeat(1000)}","data":{${foods}}}`;
    const meals = Array.from({ length: 20 }, () => meal);
    const { plain, quick } = bothWays(MEALS, meals, { tables: ['meals', 'meal_items'] });
    expect(quick).toEqual(plain);
  });

  test('no item that is longer than asked for', () => {
    const items = newItems();
    const text = '{"id":"a","name":"b"}';
    items.fill(Buffer.from(`[${text}]`));
    expect([items.shape(1, text.length - 1), items.shape(1, text.length)]).toEqual([0, text.length + 1]);
  });

  test('only tables that it was made for', () => {
    expect(QuickItems.of(planRow(MEALS), ['meals'], { user_id: 'given' })).not.toBeNull();
    expect(QuickItems.of(planRow(MEALS), ['meals'], { id: 'given' })).toBeNull();
  });
});
