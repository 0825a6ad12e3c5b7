import fc from 'fast-check';
import { expect, test } from 'vitest';
import { restoreMemory, textOf } from '../../../src/observe/schema/saved-memory.ts';
import { reportOf } from '../../../src/observe/schema/report.ts';
import { eventOf, Learner, TYPE } from './support.ts';

const day = (n: number) => Date.UTC(2026, 0, n);
const at = (n: number) => `2026-01-0${n}T00:00:00.000Z`;
/** A word for each number, without digits. */
const wordOf = (n: number) => String(n).replaceAll(/\d/g, (digit) => 'abcdefghij'[Number(digit)] ?? '');

/** Five names, other ones each time. */
const some = (nth: number) =>
  Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`w${wordOf(nth * 5 + n)}`, n]));

/** Nine names in capitals, other ones each time. */
const capitals = (nth: number) =>
  Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`W${wordOf(nth * 9 + n)}`, { a: 1 }]));

test('the first event of a type is reported as such, and each new field and kind once', () => {
  const learner = new Learner();
  learner.see(eventOf({ a: 1, b: { c: null } }), eventOf({ a: 1, b: { c: null } }));
  expect(learner.reported).toEqual([TYPE]);
  learner.see(eventOf({ a: 2.5, b: { c: 'text', d: [] } }));
  // A fraction is a number as before, and nothing was known of what was null.
  expect(learner.reported.splice(1)).toEqual(['/b/d']);
  learner.see(eventOf({ a: 'text', b: { d: [{ e: true }] } }), eventOf({ a: 'again', b: [1] }));
  expect(learner.reported.splice(1)).toEqual(['/a text', '/b/d/*', '/b/d/*/e', '/b array', '/b/*']);
  learner.see(eventOf({ a: 'text', b: { d: [{ e: true }] } }), eventOf({ a: 'again', b: [1] }));
  expect(learner.reported).toEqual([TYPE]);
});

test('what is reported: kinds with counts, shares, first and last seen', () => {
  const learner = new Learner();
  learner.see(
    eventOf({ a: 1, list: ['x', 'y'] }, { receivedAt: day(1) }),
    eventOf({ a: 'one', list: null }, { receivedAt: day(2) }),
    eventOf({ list: [] }, { receivedAt: day(3) }),
  );
  const [type] = reportOf(learner.memory, true).types;
  expect(type).toMatchObject({ type: TYPE, events: 3, looked_at: 3, first_seen: at(1), last_seen: at(3) });
  expect(type?.fields).toEqual([
    {
      path: '/a',
      kinds: { text: 1, integer: 1 },
      kinds_since: { integer: at(1), text: at(2) },
      share: 0.667,
      first_seen: at(1),
      last_seen: at(2),
    },
    {
      path: '/list',
      kinds: { array: 2, null: 1 },
      kinds_since: { array: at(1) },
      share: 1,
      first_seen: at(1),
      last_seen: at(3),
    },
    {
      path: '/list/*',
      kinds: { text: 2 },
      kinds_since: { text: at(1) },
      share: 1,
      first_seen: at(1),
      last_seen: at(1),
    },
  ]);
});

test.each([
  ['a UUID', '6b0e9a52-0000-4000-8000-0000000000ab'],
  ['a UUID without digits 0 to 9', 'abcdefab-cdef-abcd-efab-cdefabcdefab'],
  ['a day', '2026-11-21'],
  ['a year behind a word', 'day_2026'],
  ['a number', '12345'],
  ['an address', 'ann@example.org'],
  ['a telephone number', '+15550100'],
  ['words', 'Chicken breast'],
  ['a word of another script', 'яблоко'],
  ['nothing', ''],
  ['a ULID', '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
  ['the user of the event', 'bobby'],
])('a name that is %s is folded', (_what, name) => {
  const learner = new Learner();
  learner.see(eventOf({ data: { steps: 1, [name]: { n: 1 } } }, { user: 'bobby' }));
  expect(learner.paths()).toEqual(['/data', '/data/*', '/data/*/n', '/data/steps']);
  expect(textOf(learner.memory)).not.toContain(name === '' ? '"":' : name);
});

test('a name in capitals is a field once it is in nearly all of enough objects, and is data before', () => {
  const learner = new Learner();
  for (let n = 0; n < 19; n += 1) learner.see(eventOf({ Calories: 1 }));
  expect(learner.paths()).toEqual(['/*']);
  learner.see(eventOf({ Calories: 1 }), eventOf({ Calories: 1 }));
  expect(learner.paths()).toEqual(['/Calories']);
});

test('names in capitals that were there from the start are fields with all that was counted, and nothing new', () => {
  const learner = new Learner();
  for (let n = 0; n < 30; n += 1)
    learner.see(
      eventOf({ data: { VO2Max: n, BMI: { value: n / 4, unit: 'x' } } }, { receivedAt: day(n + 1) }),
    );
  expect(learner.reported).toEqual([TYPE]);
  const fields = reportOf(learner.memory, true).types[0]?.fields ?? [];
  expect(fields.map(({ path }) => path).sort()).toEqual([
    '/data',
    '/data/BMI',
    '/data/BMI/unit',
    '/data/BMI/value',
    '/data/VO2Max',
  ]);
  expect(fields.map(({ share, first_seen: first }) => [share, first])).toEqual(fields.map(() => [1, at(1)]));
  expect(fields.find(({ path }) => path === '/data/VO2Max')?.kinds).toEqual({ integer: 30 });
  expect(learner.memory.fields).toBe(5);
  // One that comes later is news, once it is known to be a field.
  for (let n = 0; n < 30; n += 1) learner.see(eventOf({ data: { VO2Max: n, BMI: { value: 1.5 }, HRV: 1 } }));
  expect(learner.reported).toEqual([TYPE, '/data/*', '/data/HRV']);
});

test('an object of many plain names has fields, in the first event and later; a new one is reported', () => {
  const learner = new Learner();
  const plain = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`plain${wordOf(n)}`, 1]));
  learner.see(eventOf({ data: plain }));
  expect(learner.paths()).toHaveLength(31);
  for (let n = 0; n < 30; n += 1) learner.see(eventOf({ data: plain }));
  learner.see(eventOf({ data: { ...plain, glucose: 1 } }));
  expect(learner.reported).toEqual([TYPE, '/data/glucose']);
  // A release that adds as many again says nothing of names that keep changing.
  const more = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`more${wordOf(n)}`, { value: 1 }]));
  learner.see(eventOf({ data: { ...plain, ...more } }));
  expect(learner.paths()).toHaveLength(1 + 30 + 1 + 80);
});

test('names of few objects are not yet those of a map, many that keep changing are', () => {
  const learner = new Learner();
  for (let n = 0; n < 19; n += 1) learner.see(eventOf({ map: some(n) }));
  expect(learner.paths()).toHaveLength(1 + 95);
  for (let n = 19; n < 22; n += 1) learner.see(eventOf({ map: some(n) }));
  expect(learner.paths()).toEqual(['/map', '/map/*']);
  expect(learner.memory.fields).toBe(2);
});

test.each([
  ['BobbyClient', 'the id in other capitals'],
  ['steps_of_bobbyclient', 'the id at the end'],
  ['bobbyclientSteps', 'the id in front'],
  ['steps_of_t1', 'a short id as a word'],
])('a name such as %s is folded: %s', (name) => {
  const learner = new Learner();
  const ids = { clientUser: 'bobbyClient', team: 't1' };
  const type = `raw.${name}.created`;
  learner.see(eventOf({ [name]: 1, latest1: 1 }, ids), eventOf({}, { ...ids, type }));
  expect(learner.paths()).toEqual(['/*', '/latest1']);
  expect([...learner.memory.types.keys()]).toEqual([TYPE, 'raw.*.created']);
});

test('an id that is a word of documented types folds none of them', () => {
  const learner = new Learner();
  learner.see(eventOf({}, { type: 'daily.data.sleep.created', clientUser: 'sleep', team: 'daily' }));
  learner.see(
    eventOf({}, { type: 'made.up.thing', clientUser: 'thing' }),
    eventOf({}, { type: 'made.up.thing' }),
  );
  expect([...learner.memory.types.keys()]).toEqual([
    'daily.data.sleep.created',
    'made.up.*',
    'made.up.thing',
  ]);
});

test('foods of a meal are data whatever they are called, as the service documents it', () => {
  const learner = new Learner();
  const type = 'daily.data.meal.created';
  learner.see(eventOf({ data: { name: 'x', data: { apple: { energy: {} }, energy: {} } } }, { type }));
  expect(learner.paths(type)).toEqual([
    '/data',
    '/data/data',
    '/data/data/*',
    '/data/data/*/energy',
    '/data/name',
  ]);
});

test('names that do not stop coming are folded, with what was counted of them; what stands beside stays', () => {
  const learner = new Learner();
  for (let n = 0; n < 40; n += 1)
    learner.see(eventOf({ owner: 1, map: { [`${wordOf(n)}x`]: { weight: n } } }));
  expect(learner.paths()).toEqual(['/map', '/map/*', '/map/*/weight', '/owner']);
  const [, , , values] = learner.memory.types.get(TYPE)?.root.all() ?? [];
  expect([values?.path, values?.seen, values?.kinds.object]).toEqual(['/map/*', 40, 40]);
  expect(learner.memory.fields).toBe(4);
});

test('more names than an object can have fields are data', () => {
  const learner = new Learner();
  const names = Array.from(
    { length: 300 },
    (_, n) => `f${n.toString(26).replaceAll(/\d/g, (d) => 'qrstuvwxyz'[Number(d)] ?? '')}`,
  );
  learner.see(eventOf(Object.fromEntries(names.map((name) => [name, 1]))));
  expect(learner.paths()).toEqual(['/*']);
});

test('documented names are never taken for data, however seldom each is there', () => {
  const learner = new Learner();
  const names = ['alcohol', 'biotin', 'calcium', 'carbs', 'copper', 'fat', 'fiber', 'iodine', 'iron', 'zinc'];
  for (const name of names) learner.see(eventOf({ [name]: { value: 1 } }));
  expect(learner.paths()).toHaveLength(2 * names.length);
});

test('ids in a type are folded, and types are bounded', () => {
  const learner = new Learner({ types: 2, fieldsOfType: 10, fields: 100 });
  learner.see(eventOf({}, { type: 'raw.6b0e9a52-0000-4000-8000-0000000000ab.created' }));
  learner.see(eventOf({}, { type: 'raw.6b0e9a52-0000-4000-8000-0000000000ac.created' }), eventOf({}));
  expect([...learner.memory.types.keys()]).toEqual(['raw.*.created', TYPE]);
  expect(learner.memory.isFull).toBe(false);
  learner.see(eventOf({}, { type: 'one.more' }));
  expect(learner.memory.isFull).toBe(true);
  expect(learner.reported).toEqual(['raw.*.created', TYPE]);
});

test('fields are bounded, of a type and of all; what is remembered is still counted', () => {
  const learner = new Learner({ types: 10, fieldsOfType: 3, fields: 5 });
  const six = { aa: 1, bb: { cc: 1, dd: 1 }, ee: [1], ff: 1 };
  learner.see(eventOf(six), eventOf(six), eventOf(six, { type: 'other' }));
  expect([learner.paths(), learner.paths('other')]).toEqual([
    ['/aa', '/bb', '/bb/cc'],
    ['/aa', '/bb'],
  ]);
  expect(learner.memory.types.get(TYPE)).toMatchObject({ isFull: true, seen: 2 });
  expect(learner.memory.types.get(TYPE)?.root.members?.get('aa')?.seen).toBe(2);
});

test('names that may be data are bounded too, however many places have them; those that steadily come are fields all the same', () => {
  const learner = new Learner({ doubts: 50 });
  const doubts = () =>
    [...(learner.memory.types.get(TYPE)?.root.all() ?? [])].reduce(
      (sum, { doubts: own }) =>
        sum + [...(own?.values() ?? [])].reduce((all, field) => all + [...field.all()].length, 0),
      0,
    );
  for (let n = 0; n < 40; n += 1) {
    learner.see(eventOf({ one: capitals(3 * n), two: capitals(3 * n + 1), three: [capitals(3 * n + 2)] }));
    expect(doubts()).toBeLessThanOrEqual(50);
  }
  for (let n = 0; n < 60; n += 1) learner.see(eventOf({ VO2Max: 1 }, { type: 'other' }));
  expect(learner.paths('other')).toEqual(['/VO2Max']);
});

test.each([
  ['no JSON', '{"a":1,'],
  ['no comma', '{"a":1 "b":2}'],
  ['nothing', ''],
  ['a bare number', '17'],
  ['deep nesting', '['.repeat(100_000)],
  ['a deep object', `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`],
])('%s harms nothing', (_what, text) => {
  const learner = new Learner();
  learner.see(eventOf(null, { body: Buffer.from(text) }), eventOf({ z: 1 }));
  expect(learner.paths()).toContain('/z');
  expect(learner.memory.fields).toBeLessThan(50);
});

test('__proto__ and repeated names are names', () => {
  const learner = new Learner();
  const body = Buffer.from('{"__proto__":{"x":1},"constructor":1,"a":1,"a":"two","\\u0061":true}');
  learner.see(eventOf(null, { body }), eventOf(null, { body }));
  expect(learner.paths()).toEqual(['/__proto__', '/__proto__/x', '/a', '/constructor']);
  const kept = restoreMemory(textOf(learner.memory));
  expect(textOf(kept)).toBe(textOf(learner.memory));
  expect(reportOf(kept, true).types[0]?.fields.find(({ path }) => path === '/a')?.share).toBe(1);
});

/** A value that is found wherever it goes. */
const telling = fc.stringMatching(/^[a-z]{3,8}$/).map((word) => `Secret ${word}`);
const leaf = fc.oneof(
  telling,
  fc.constantFrom(987_654_321, 98_765.4321, -9.87654321e30),
  fc.constant(null),
  fc.boolean(),
);
const name = fc.oneof(fc.constantFrom('data', 'name', 'value', 'other', 'list', 'Weight'), telling);
const { document } = fc.letrec((tie) => ({
  document: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('document'), { maxLength: 4 }),
    fc.dictionary(name, tie('document'), { maxKeys: 5 }),
  ),
}));

test('nothing of a value is kept, nor a name that is data; what is kept is read back as it was', () => {
  fc.assert(
    fc.property(fc.array(fc.dictionary(name, document), { minLength: 1, maxLength: 30 }), (documents) => {
      const learner = new Learner();
      learner.see(...documents.map((one) => eventOf(one)));
      const text = textOf(learner.memory);
      const report = JSON.stringify(reportOf(learner.memory, true));
      expect(`${text}${report}${learner.reported.join()}`).not.toMatch(/Secret|9\D?8\D?7\D?6\D?5/);
      expect(textOf(restoreMemory(text))).toBe(text);
      expect(learner.memory.fields).toBe(learner.paths().length);
      // Again, and nothing is new.
      const before = learner.reported.length;
      const again = learner.paths();
      learner.see(...documents.map((one) => eventOf(one)));
      if (JSON.stringify(again) === JSON.stringify(learner.paths()))
        expect(learner.reported).toHaveLength(before);
    }),
    { numRuns: 100 },
  );
});
