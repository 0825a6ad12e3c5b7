import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { expect, test } from 'vitest';
import type { IncomingMessage, Ingest } from '../../src/core/ingest.ts';
import { createTake } from '../../src/sources/take.ts';

const message = async (id: string, size: number): Promise<IncomingMessage> => {
  const body = Buffer.alloc(size, 'x');
  return {
    body: size > 1000 ? await promisify(gzip)(body) : body,
    encoding: size > 1000 ? 'gzip' : null,
    properties: { 'idempotency-key': id },
    receivedAt: 0,
  };
};

/** @param note returns the seq */
function takeBy(note: (...call: Parameters<Ingest['accept']>) => number): ReturnType<typeof createTake> {
  return createTake({
    validate: () => ({ isValid: true, envelope: { type: 't', team: null, user: 'u', clientUser: null } }),
    ingest: {
      accept: (...call) => Promise.resolve({ status: 'accepted', seq: note(...call) }),
      quarantine: () => Promise.reject(new Error('nothing here is invalid')),
    },
    maxBytes: 1e9,
  });
}

test('messages enter the journal in the order they came in, whatever decompressing takes', async () => {
  const order: string[] = [];
  const deliver = takeBy((event) => order.push(event.id));
  await deliver(
    'hub',
    await Promise.all([message('a', 5e6), message('b', 10), message('c', 5000), message('d', 10)]),
  );
  expect(order).toEqual(['a', 'b', 'c', 'd']);
});

test('the trace of a message continues with its event', async () => {
  const handlings: unknown[] = [];
  const deliver = takeBy((_event, options) => handlings.push(options?.handling));
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const plain = await message('a', 10);
  await deliver('hub', [{ ...plain, properties: { ...plain.properties, traceparent } }, plain]);
  expect(handlings).toEqual([{ trace: { traceparent } }, undefined]);
});

test('an id that no webhook could have is replaced by its hash: two that differ stay two, the same stays one', async () => {
  const seen: { id: string; key: string | undefined }[] = [];
  const deliver = takeBy((event, options) => seen.push({ id: event.id, key: options?.dedupKey }));
  const odd = ['a\u001b[31m', 'a b', 'é', 'x'.repeat(10_000), '', 'a b', '../fine'];
  for (const id of odd) await deliver('hub', [await message(id, 10)]);
  const ids = seen.map(({ id }) => id);
  for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]{1,256}$/);
  expect(ids[1]).toBe(ids[5]);
  expect(new Set(ids).size).toBe(6);
  expect(ids[6]).toBe('../fine');
  expect(seen[1]?.key).toEqual(expect.any(String));
  expect(seen[1]?.key).toBe(seen[5]?.key);
});
