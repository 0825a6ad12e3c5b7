import { expect, test } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { recordedEventOf, recordOf } from '../../src/journal/kafka/record.ts';
import { asRead } from './as-read.ts';

const read = (message: ReturnType<typeof recordOf>) => recordedEventOf(asRead(message));

test('a record has all of its event, byte for byte', () => {
  const { seq: _, handling: __, ...event } = contractEvent(1, { body: Buffer.from([0xff, 0, 0x7b]) });
  const reasons = [{ code: 'not_json', detail: 'it is none' }];
  const extra = { handling: { only: ['a:b'] }, dedupKey: 'other', again: 'dead letter 3', reasons };
  expect(read(recordOf(event, null, extra))).toEqual({ event, refusal: null, ...extra });
  const unnamed = { ...event, team: null, user: '', clientUser: null };
  expect(read(recordOf(unnamed, null, {}))).toMatchObject({
    event: unnamed,
    dedupKey: event.id,
    again: null,
  });
});

const header = (name: string, text: string): [Buffer, Buffer] => [Buffer.from(name), Buffer.from(text)];

const headers = (value: unknown) => [
  header('idempotency-key', 'a'),
  header('millrace', JSON.stringify(value)),
];

const good = { source: 'webhooks', at: 1, headers: {}, handling: { only: ['a'] } };

test('a sealed record of an earlier version is refused by name, and not passed over', () => {
  const sealed = { value: Buffer.from('sealed'), headers: [header('millrace-sealed', '{}')] };
  expect(() => recordedEventOf(sealed)).toThrow(expect.objectContaining({ code: 'journal_unreadable' }));
});

test.each([
  null,
  [],
  'text',
  { ...good, source: 1 },
  { ...good, at: '1' },
  { ...good, headers: { a: 1 } },
  { ...good, handling: null },
  { ...good, handling: { only: 'a' } },
  { ...good, handling: { only: [1] } },
  { ...good, key: 1 },
  { ...good, again: true },
  { ...good, reasons: ['a'] },
  { ...good, letter: {} },
])('%j of a stranger is passed over', (rest) => {
  expect(recordedEventOf({ value: Buffer.from('{}'), headers: headers(good) })).not.toBeNull();
  expect(recordedEventOf({ value: Buffer.from('{}'), headers: headers(rest) })).toBeNull();
  expect(recordedEventOf({ value: null, headers: headers(good) })).toBeNull();
});
