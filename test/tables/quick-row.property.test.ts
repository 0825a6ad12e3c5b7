import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { RowReject } from '../../src/tables/shape/reject.ts';
import { RowLines } from '../../src/tables/shape/row-lines.ts';
import { Shaper } from '../../src/tables/shape/shape.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { runCount } from '../support/run-count.ts';

// Records of an archive are shaped by WebAssembly where they are as usual, and by JavaScript where not.

const EVENTS = TABLES.get('events');
if (EVENTS === undefined) throw new Error('there is no table events');
const NAMES = EVENTS.definition.columns.map(({ name }) => name);

const RECORD = {
  id: 'msg_1',
  source: 'webhooks',
  received_at: '2026-11-21T10:00:00.000Z',
  event_type: 'a.b',
  team_id: null,
  user_id: 'user-1',
  client_user_id: 'client "1" é',
  headers: { 'webhook-id': 'msg_1' },
  event: { event_type: 'a.b', data: [1.5, '0123456789abcdef', { deep: [[]] }, null, true] },
};

/** The rows of one text, and what was rejected. With `items` as items of an array, which WebAssembly never sees. */
function rowsOf(text: string, as: 'document' | 'item' = 'document') {
  const rejects: RowReject[] = [];
  const left: string[] = [];
  const entry = EVENTS as NonNullable<typeof EVENTS>;
  const lines = new RowLines(entry.definition);
  const shaper = new Shaper(entry, {
    tables: ['events'],
    targets: new Map([['events', lines]]),
    onReject: (reject) => rejects.push(reject),
    onUnknown: (_, path) => left.push(path),
  });
  if (as === 'document') shaper.shape(Buffer.from(text));
  else shaper.shapeItem(Buffer.from(`[${text}]\0\0\0`), 1, 1e6);
  const met = shaper.met();
  return { rows: lines.view().toString(), rejects, left, met };
}

it('a usual record is a row of what JSON.parse says', () => {
  const { rows, rejects } = rowsOf(JSON.stringify(RECORD));
  const { team_id: _, ...values } = RECORD;
  expect(JSON.parse(rows)).toEqual(values);
  expect(rejects).toEqual([]);
});

it('wherever it is damaged, a record that JSON.parse refuses is refused', () => {
  const text = JSON.stringify(RECORD);
  const damaged = Array.from(text, (_, at) => [
    text.slice(0, at),
    ...['\u0001', '"', '}', ',', '\\'].map((wrong) => `${text.slice(0, at)}${wrong}${text.slice(at + 1)}`),
  ]).flat();
  for (const one of [...damaged, `${text} x`, `${text}}`]) {
    const { rows, rejects } = rowsOf(one);
    expect([one, isJson(one), rows === '']).toEqual([one, rejects.length === 0, rejects.length === 1]);
  }
});

function isJson(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return (value as { id?: unknown }).id !== '' && typeof (value as { id?: unknown }).id === 'string';
  } catch {
    return false;
  }
}

const anything = fc.oneof(
  { weight: 3, arbitrary: fc.json() },
  fc.constantFrom('null', '1e400', '{"a":1,"a":2}', '"\\u00e9\\/"', '[ 1 , 2 ]', '"2026-11-21"', '{ }'),
  fc.constantFrom('"2026-11-21T10:00:00.123456789+02:00"', '"2026-13-01T00:00:00Z"', '{"deep":[[[[1]]]]}'),
);
const usual = fc.constantFrom(
  ...Object.entries(RECORD).map(([name, value]) => [name, JSON.stringify(value)]),
);
const member = fc.oneof(usual, fc.tuple(fc.constantFrom(...NAMES, 'never_seen', 'extra', ''), anything));
const record = fc
  .tuple(fc.array(member, { maxLength: 8 }), fc.constantFrom('', ' ', '\n\t'))
  .map(([members, white]) => {
    const all = [['id', '"msg_1"'], ...members].map(([name, value]) => `"${name}":${white}${value}`);
    return `{${all.join(`,${white}`)}}`;
  });

it('whatever is in a record, both ways make the same row of it', () => {
  fc.assert(
    fc.property(record, (text) => {
      const whole = rowsOf(text);
      // An item is left alone where a document is rejected.
      if (whole.rejects.length > 0) expect(whole.rows).toBe('');
      else expect(whole).toEqual(rowsOf(text, 'item'));
    }),
    { numRuns: runCount({ quick: 300, long: 1500 }) },
  );
});

it.each(['[ 1 , 2 ]', '{"a":"\\u00e9\\/"}', '[1e400]', `[${'1'.repeat(400)}]`])(
  'JSON is made canonical: %s',
  (odd) => {
    const text = `{"id":"msg_1","headers":{"a":"b"},"event":${odd}}`;
    expect(rowsOf(text).rejects).toEqual([]);
    expect(rowsOf(text)).toEqual(rowsOf(text, 'item'));
    expect(rowsOf(text).rows).not.toContain(odd);
  },
);

it('nothing stands behind a record', () => {
  for (const behind of [' ', '\n', '}']) expect(rowsOf(`{"id":"msg_1"}${behind}`).rejects).toHaveLength(1);
});

function deep(levels: number): string {
  return `{"id":"msg_1","event":${'['.repeat(levels)}${']'.repeat(levels)}}`;
}

it('a record is as deep as it may be', () => {
  expect(rowsOf(deep(199)).rejects).toEqual([]);
  expect(rowsOf(deep(200)).rejects).toMatchObject([{ code: expect.any(String) as string }]);
  expect(rowsOf(deep(199)).rows).toBe(rowsOf(deep(199), 'item').rows);
});
