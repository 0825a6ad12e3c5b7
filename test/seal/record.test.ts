import { createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatRecords } from '../../src/core/archive-record.ts';
import { formatSealed, isSealed, parseSealed, type SealedRecord } from '../../src/core/sealed-record.ts';
import { openLine, sealLine } from '../../src/seal/record.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';

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

  it('is told from a record, and a line of a later version from one of this', () => {
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
