import fc from 'fast-check';
import { crc32c, Reader, readRecordsBatches } from '@platformatic/kafka';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { BATCH_BYTES, RECORD_BYTES, type Message } from '../../src/vendors/kafka/message.ts';
import { encodeBatch, encodeCompressed, encodeRecord } from '../../src/vendors/kafka/record-batch.ts';

const bytes = fc.uint8Array({ maxLength: 300 }).map((each) => Buffer.from(each));
const message: fc.Arbitrary<Message> = fc.record({
  key: fc.option(bytes),
  value: fc.option(bytes),
  headers: fc.array(fc.tuple(bytes, fc.oneof(bytes, fc.string({ unit: 'binary', maxLength: 200 }))), {
    maxLength: 5,
  }),
});
const head = { producer: 2n ** 40n, epoch: 7, sequence: 2 ** 31 - 5, time: 1_790_000_000_123 };

const readBack = (batch: Buffer): object => {
  const [found, ...more] = readRecordsBatches(Reader.from(batch));
  expect(more).toEqual([]);
  expect(found).toMatchObject({
    firstOffset: 0n,
    length: batch.length - 12,
    magic: 2,
    crc: crc32c(batch.subarray(21)),
    firstTimestamp: BigInt(head.time),
    maxTimestamp: BigInt(head.time),
    producerId: head.producer,
    producerEpoch: head.epoch,
    firstSequence: head.sequence,
  });
  return (
    found?.records.map(({ key, value, headers, offsetDelta }) => ({ key, value, headers, offsetDelta })) ?? []
  );
};

test('a batch is read as it was written, and is not larger than was said', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 100 }), async (messages) => {
      const expected = messages.map(({ headers, ...each }, offsetDelta) => ({
        ...each,
        headers: headers.map(([name, text]) => [name, Buffer.from(text)]),
        offsetDelta,
      }));
      const records = messages.map(encodeRecord);
      const batch = encodeBatch(records, head, crc32c);
      expect(readBack(batch)).toEqual(expected);
      expect(batch.length).toBeLessThanOrEqual(
        records.reduce((sum, { length }) => sum + RECORD_BYTES + length, BATCH_BYTES),
      );
      const packed = await encodeCompressed(records, head, crc32c, {
        bitmask: 1,
        compress: (all) => gzipSync(all),
      });
      expect(readBack(packed)).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});

test('numbers of every length', () => {
  const value = Buffer.alloc(3 * 2 ** 20, 1);
  const messages = Array.from({ length: 9000 }, (_, n) => ({
    key: null,
    value: n === 8999 ? value : Buffer.alloc(n % 200),
    headers: [],
  }));
  expect(readBack(encodeBatch(messages.map(encodeRecord), head, crc32c))).toEqual(
    messages.map((each, offsetDelta) => ({ ...each, offsetDelta })),
  );
});
