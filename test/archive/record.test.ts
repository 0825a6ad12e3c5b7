import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bodyText,
  formatRecords,
  parseHead,
  parseRecord,
  recordPieces,
} from '../../src/core/archive-record.ts';
import type { ArchiveRecord } from '../../src/core/archive.ts';
import type { Event } from '../../src/core/event.ts';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { jsonLines } from '../support/json-lines.ts';

function lineOf(event: Event): Buffer {
  const line = formatRecords([event]);
  expect(line.indexOf(10)).toBe(line.length - 1);
  return line.subarray(0, -1);
}

function roundTrip(event: Event): { body: Buffer; record: ArchiveRecord } {
  const line = lineOf(event);
  expect(() => void JSON.parse(line.toString())).not.toThrow();
  const parsed = parseRecord(line);
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed;
}

function largeBody(size: number): Buffer {
  return Buffer.from(`{"made_up":"${'x'.repeat(size - 14)}"}`);
}

/** JSON text of any object, as different senders would write it. */
const jsonObject = fc
  .tuple(
    fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
    fc.constantFrom('', ' ', '\t', '\n  ', '\r\n'),
  )
  .map(([value, indent]) =>
    JSON.stringify(value, null, indent === '' ? undefined : 2).replaceAll('\n', indent || '\n'),
  );

describe('archive record', () => {
  it('has the fields of the format, in its order', () => {
    const event = contractEvent(1);
    expect(lineOf(event).toString()).toBe(
      '{"id":"msg_1","source":"webhooks","received_at":"2026-11-21T03:15:02.124Z",' +
        '"event_type":"daily.data.meal.created","team_id":"team-1","user_id":"user-1",' +
        '"client_user_id":"customer-patient-123","headers":{"svix-id":"msg_1","svix-timestamp":"1795230902",' +
        `"svix-signature":"v1,AAAA"},"event":${event.body.toString()}}`,
    );
  });

  it('has the time to the millisecond, whatever times came before', () => {
    const near = fc.array(fc.nat({ max: 2500 }), { minLength: 1 });
    const any = fc.integer({ min: -1e12, max: 3e14 });
    fc.assert(
      fc.property(any, near, (base, steps) => {
        const times = steps.map((step) => base + step);
        const lines = formatRecords(times.map((receivedAt) => contractEvent(1, { receivedAt })));
        const found = jsonLines<ArchiveRecord>(lines);
        expect(found.map((record) => record.received_at)).toEqual(
          times.map((ms) => new Date(ms).toISOString()),
        );
      }),
    );
  });

  it('fault 25: gives back the bytes of awkward bodies', () => {
    for (const body of awkwardBodies()) {
      expect(roundTrip(contractEvent(1, { body })).body.equals(body)).toBe(true);
    }
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('comes in pieces with the same bytes, large bodies as they are', () => {
    const bodies = [...awkwardBodies(), ...[4095, 4096, 9000].map((size) => largeBody(size))];
    const events = [...bodies, ...bodies.toReversed()].map((body, n) => contractEvent(n, { body }));
    const pieces = recordPieces(events, Buffer.allocUnsafe);
    expect(Buffer.concat(pieces).equals(formatRecords(events))).toBe(true);
    const own = new Set(pieces.filter((piece) => bodies.includes(piece)).map(({ length }) => length));
    expect(own.isSupersetOf(new Set([4096, 9000]))).toBe(true);
    expect(Math.min(...own)).toBe(4096);
    expect(recordPieces(events, Buffer.allocUnsafe, 1_000_000)).toHaveLength(1);
  });

  it('fault 24: keeps what is no JSON object, or no UTF-8, in base64 beside a null', () => {
    for (const body of [
      Buffer.from(''),
      Buffer.from('[1]'),
      Buffer.from('{'),
      Buffer.from('\ufeff{}'),
      Buffer.from([123, 34, 0xff, 34, 125]),
    ]) {
      expect(bodyText(body).toString()).toBe('null');
      expect(roundTrip(contractEvent(1, { body })).body.equals(body)).toBe(true);
    }
  });

  it('mends lone surrogates only, at the same length', () => {
    expect(mend('{"a":"\\uD800"}')).toBe('{"a":"\\ufffd"}');
    expect(mend('{"a":"\\udc00\\ud83c\\udf72\\ud800\\ud83c\\udf72"}')).toBe(
      '{"a":"\\ufffd\\ud83c\\udf72\\ufffd\\ud83c\\udf72"}',
    );
    expect(mend('{"a":"\\\\ud800 \\\\\\ud800"}')).toBe('{"a":"\\\\ud800 \\\\\\ufffd"}');
  });

  it('fault 28: is byte-exact for any JSON and any text in any field, within one line', () => {
    const text = fc.string({ unit: 'binary', maxLength: 40 });
    const fields = fc.record({
      id: text,
      source: text,
      type: text,
      team: fc.option(text),
      user: fc.option(text),
      clientUser: fc.option(text),
      headers: fc.dictionary(fc.oneof(text, fc.constant('event')), text),
      body: fc.oneof(
        jsonObject.map((json) => Buffer.from(json)),
        fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      ),
    });
    fc.assert(
      fc.property(fields, (changes) => {
        // An array of bytes may look like an object without being JSON; that never gets past the receiver.
        fc.pre(bodyText(changes.body).toString() === 'null' || isJson(changes.body));
        const { record, body } = roundTrip(contractEvent(1, changes));
        expect(body.equals(changes.body)).toBe(true);
        const { id, source, type, team, user, clientUser, headers } = changes;
        expect(record).toMatchObject({
          id,
          source,
          event_type: type,
          team_id: team,
          user_id: user,
          client_user_id: clientUser,
        });
        expect(new Map(Object.entries(record.headers))).toEqual(new Map(Object.entries(headers)));
      }),
      { numRuns: 2000 },
    );
  });

  it('replaces lone surrogates in ids, which many readers refuse', () => {
    const line = lineOf(contractEvent(1, { user: 'a\ud800b' }));
    expect(parseHead(line)?.record.user_id).toBe('a\ufffdb');
  });

  it('says why a line is no record', () => {
    const whole = lineOf(contractEvent(1, { body: Buffer.from('{\n}') }));
    expect(reason(whole)).toBe('ok');
    expect(reason('')).toBe('not an archive record');
    expect(reason('{"id":1},"event":{}}')).toBe('not an archive record');
    expect(reason(whole.subarray(0, -1))).toBe('the record is cut short');
    expect(reason(whole.toString().replace('ewp9"', 'ewp*"'))).toBe('body_base64 is not base64');
    expect(reason(whole.toString().replace('{ }', '{  }'))).toBe('event and body_base64 disagree');
  });
});

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}

function mend(text: string): string {
  return bodyText(Buffer.from(text)).toString();
}

function reason(line: Buffer | string): string {
  const parsed = parseRecord(Buffer.from(line));
  return parsed.ok ? 'ok' : parsed.reason;
}
