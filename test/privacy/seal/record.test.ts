import { createSecretKey } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { formatRecords } from '../../../src/core/archive-record.ts';
import { formatSealed, isSealed, parseSealed, type SealedRecord } from '../../../src/core/sealed-record.ts';
import { Deflate, openLine, sealLine } from '../../../src/privacy/seal/record.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';

const ID = '0123456789abcdef0123456789abcdef';
const AT = '2026-11-21T03:15:02.123Z';
const key = createSecretKey(Buffer.alloc(32, 3));

/** As it goes to disk and comes back. */
function stored(record: SealedRecord): SealedRecord {
  const line = Buffer.from(formatSealed(record));
  expect(line.indexOf('\n')).toBe(line.length - 1);
  expect(JSON.parse(line.toString())).toMatchObject({ sealed: 1, key: record.key });
  const parsed = parseSealed(line.subarray(0, -1));
  if (parsed === null) throw new Error('not a sealed record');
  return parsed;
}

describe('a sealed record', () => {
  it('opens to the very bytes that were sealed, of any kind and length', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 1000 }),
      fc.uint8Array({ minLength: 9000, maxLength: 20_000 }),
    );
    fc.assert(
      fc.property(bytes, fc.integer({ min: 0, max: 5 }), (content, repeats) => {
        const line = Buffer.concat(Array.from({ length: repeats + 1 }, () => content));
        expect(openLine(key, stored(sealLine(ID, key, AT, line)))?.equals(line)).toBe(true);
      }),
    );
  });

  it('does not open when anything of it is changed, or with another key', () => {
    const sealed = sealLine(ID, key, AT, Buffer.from('{"id":"msg_1"}'.repeat(50)));
    const change = fc.record({
      part: fc.constantFrom('nonce' as const, 'data' as const),
      at: fc.nat(),
      bit: fc.integer({ min: 0, max: 7 }),
    });
    fc.assert(
      fc.property(change, ({ part, at, bit }) => {
        const changed = Buffer.from(sealed[part]);
        const index = at % changed.length;
        changed[index] = (changed[index] ?? 0) ^ (1 << bit);
        expect(openLine(key, { ...sealed, [part]: changed })).toBeNull();
      }),
    );
    expect(openLine(key, { ...sealed, received_at: AT.replace('21T', '22T') })).toBeNull();
    expect(openLine(key, { ...sealed, key: ID.replace('0', '1') })).toBeNull();
    expect(openLine(createSecretKey(Buffer.alloc(32, 4)), sealed)).toBeNull();
    for (const data of [Buffer.alloc(0), sealed.data.subarray(0, 16), sealed.data.subarray(1)]) {
      expect(openLine(key, { ...sealed, data })).toBeNull();
    }
  });

  it('is never sealed the same way twice', () => {
    const line = Buffer.from('{"id":"msg_1"}');
    const all = Array.from({ length: 200 }, () => formatSealed(sealLine(ID, key, AT, line)));
    expect(new Set(all).size).toBe(all.length);
  });

  it('is distinguished from a record, and a line of a later version from one of this version', () => {
    const line = formatSealed(sealLine(ID, key, AT, Buffer.from('{}'))).trimEnd();
    expect(isSealed(formatRecords([contractEvent(1)]))).toBe(false);
    for (const other of [
      line.replace('"sealed":1', '"sealed":2'),
      line.slice(0, -1),
      `${line}x`,
      '{"sealed":1}',
    ]) {
      expect([isSealed(Buffer.from(other)), parseSealed(Buffer.from(other))]).toEqual([true, null]);
    }
  });
});

const DICTIONARY = Buffer.from('{"event_type":"daily.data.meal.created","user_id":""}');

/** From what compresses well to what does not at all, around the length from which each text has a compressor of its own. */
const text = fc.oneof(
  fc.uint8Array({ maxLength: 3000 }),
  fc.uint8Array({ minLength: 8100, maxLength: 8300 }),
  fc
    .tuple(fc.string({ unit: 'binary' }), fc.nat(300))
    .map(([part, times]) => Buffer.from(part.repeat(times))),
);

it('each text can be read alone, whatever was compressed before it', () => {
  const deflate = new Deflate(DICTIONARY);
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (texts) => {
      const all = texts.map((each) => deflate.compress(Buffer.from(each)));
      for (const [i, each] of texts.entries())
        expect(inflateRawSync(all[i] ?? '', { dictionary: DICTIONARY }).equals(each)).toBe(true);
    }),
  );
});

it('texts come out as they do of node', () => {
  const deflate = new Deflate(DICTIONARY);
  const options = { level: 4, memLevel: 5, windowBits: 14, dictionary: DICTIONARY };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 8000 }), (bytes) => {
      expect(deflate.compress(Buffer.from(bytes)).equals(deflateRawSync(bytes, options))).toBe(true);
    }),
  );
});

it('a failure, as of memory that is short, spoils one text and none after it', () => {
  const deflate = new Deflate(DICTIONARY);
  const long = Buffer.from('{"user_id":"user-1"}'.repeat(50));
  deflate.compress(long);
  // The copy of what was compressed, in the library.
  vi.spyOn(Buffer, 'from').mockImplementationOnce(() => {
    throw new RangeError('Array buffer allocation failed');
  });
  expect(() => deflate.compress(long)).toThrow('allocation failed');
  vi.restoreAllMocks();
  for (let n = 0; n < 3; n += 1)
    expect(inflateRawSync(deflate.compress(long), { dictionary: DICTIONARY }).equals(long)).toBe(true);
});
