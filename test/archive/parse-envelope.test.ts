import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatRecords, parseEnvelope } from '../../src/core/archive-record.ts';
import { makeEvent } from '../support/events.ts';

/** Mostly what is read without JSON.parse; each kind of text that must not be is alone in some. */
const text = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('', 'a', 'B-1', 'v1,x=', 'a.b') },
  { weight: 1, arbitrary: fc.constantFrom('"', 'a\\', 'é', '\u{1f600}', '\u007f', '\n', '\u0000') },
);
const event = fc.record({
  id: text,
  source: text,
  type: text,
  team: fc.option(text),
  user: fc.option(text),
  clientUser: fc.option(text),
  headers: fc.dictionary(fc.oneof(text, fc.constant('__proto__')), text, { maxKeys: 3 }),
});

/** What may go wrong in a line, and what another writer may write. */
const piece = fc.constantFrom(
  '',
  '"',
  '\\',
  ',',
  ':',
  '{',
  '}',
  ' ',
  'null',
  '1',
  '\\u0041',
  '\u0001',
  '\u007f',
  'é',
);
const change = fc.record({ at: fc.nat(300), length: fc.integer({ min: 0, max: 3 }), piece });

const AFTER_HEAD = '"event":{"a":1}}';

function isTexts(...values: readonly unknown[]): boolean {
  return values.every((value) => typeof value === 'string');
}

/** What JSON.parse says of the part in front of the event; null when that is no record's. */
function plainly(head: Buffer): Record<string, unknown> | null {
  // The first place that looks like the end of the headers is.
  if (!head.toString('latin1').endsWith('},')) return null;
  try {
    const value = JSON.parse(`${head.toString().slice(0, -1)}}`) as Record<string, unknown>;
    const { id, source, received_at, event_type, team_id, user_id, client_user_id, headers } = value;
    const isWhole =
      isTexts(id, source, received_at, event_type) &&
      [team_id, user_id, client_user_id].every((one) => one === null || typeof one === 'string') &&
      typeof headers === 'object' &&
      headers !== null &&
      !Array.isArray(headers) &&
      isTexts(...Object.values(headers));
    return isWhole ? { id, received_at, event_type, team_id, user_id, client_user_id } : null;
  } catch {
    return null;
  }
}

test('takes the lines that JSON.parse takes, and reads the same in them, whatever is changed in their heads', () => {
  let [taken, refused] = [0, 0];
  fc.assert(
    fc.property(event, fc.array(change, { maxLength: 2 }), (fields, changes) => {
      const line = formatRecords([makeEvent({ ...fields, body: Buffer.from('{"a":1}') })]);
      let head = line.subarray(0, line.length - 1 - AFTER_HEAD.length);
      for (const { at, length, piece: other } of changes) {
        // Most of them where JSON has its marks.
        const marks = [...head.entries()].filter(([, byte]) => '",:{}'.includes(String.fromCharCode(byte)));
        const from = at % 4 === 0 ? at % head.length : (marks[at % marks.length]?.[0] ?? 0);
        head = Buffer.concat([head.subarray(0, from), Buffer.from(other), head.subarray(from + length)]);
      }
      const expected = plainly(head);
      const whole = Buffer.concat([head, Buffer.from(AFTER_HEAD)]);
      const parsed = parseEnvelope(whole);
      if (expected === null) {
        refused += 1;
        expect(parsed.ok).toBe(false);
        return;
      }
      taken += 1;
      if (!parsed.ok) throw new Error('refused');
      expect(parsed.record).toMatchObject(expected);
      expect(parsed.body.toString()).toBe('{"a":1}');
    }),
    { numRuns: 5000 },
  );
  expect(Math.min(taken, refused)).toBeGreaterThan(500);
});

test.each([100, 1100, 5000])('a head of any length: %i bytes of an id', (length) => {
  const line = formatRecords([makeEvent({ id: 'x'.repeat(length) })]).subarray(0, -1);
  expect(parseEnvelope(line)).toMatchObject({ ok: true, record: { id: 'x'.repeat(length) } });
});

test('a record whose body is not as it came: the same checks as of the whole record', () => {
  const line = formatRecords([makeEvent({ body: Buffer.from('{"a":\n1}') })])
    .toString()
    .slice(0, -1);
  expect(parseEnvelope(Buffer.from(line))).toMatchObject({ ok: true, body: Buffer.from('{"a":\n1}') });
  expect(parseEnvelope(Buffer.from(line.replace('"a"', '"b"'))).ok).toBe(false);
  expect(parseEnvelope(Buffer.from(line.slice(0, -1))).ok).toBe(false);
});

test.each([
  ['a comma too many', '"made-up"}', '"made-up",}'],
  ['a comma at the front', '{"webhook-id"', '{,"webhook-id"'],
  ['no colon', '"webhook-id":', '"webhook-id"'],
  ['a header that is no text', '"made-up"}', '1}'],
  ['headers that are no object', '{"webhook-id":"made-up"}', '[]'],
  ['a source that is no text', '"source":"webhooks"', '"source":null'],
])('refused: %s', (_, whole, broken) => {
  const line = formatRecords([makeEvent()]).toString().slice(0, -1);
  expect(line).toContain(whole);
  expect(parseEnvelope(Buffer.from(line)).ok).toBe(true);
  expect(parseEnvelope(Buffer.from(line.replace(whole, broken))).ok).toBe(false);
});
