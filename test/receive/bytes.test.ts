import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { MemoryBudget, Reservation } from '../../src/receive/budget.ts';
import { readBytes, stopReading, type Bytes, type Refusal } from '../../src/receive/bytes.ts';

/** A request whose body comes in these pieces. `length`: as declared; the sum of them when left out. */
function reading(
  pieces: readonly number[],
  options: { length?: number | null; limit?: number; max?: number } = {},
) {
  const sum = pieces.reduce((one, other) => one + other, 0);
  const budget = new MemoryBudget(options.max ?? 1e9);
  const memory = new Reservation(budget);
  const request = Object.assign(new PassThrough(), { socket: {} });
  const length = options.length === undefined ? sum : options.length;
  const result = new Promise<Bytes | Refusal>((resolve) => {
    readBytes(request as unknown as IncomingMessage, length, options.limit ?? 1e6, memory, resolve);
  });
  for (const [n, bytes] of pieces.entries()) request.emit('data', Buffer.alloc(bytes, 65 + (n % 26)));
  return { request, result, memory, budget, end: () => request.emit('end') };
}

test.each([
  ['less than', 11],
  ['more than', 9],
])('a body of %s its declared length is refused', async (_what, length) => {
  const { result, end } = reading([4, 6], { length });
  end();
  expect(await result).toMatchObject({ ok: false, code: 'body_malformed' });
});

test('a body is whole, in the order of its pieces, with or without a declared length', async () => {
  for (const length of [6, null]) {
    const { result, memory, end } = reading([1, 2, 3], { length });
    end();
    expect(await result).toEqual({ ok: true, body: Buffer.from('ABBCCC') });
    // Each piece costs more than its bytes.
    expect(memory.work).toBe(6 + 3 * 256);
  }
  const empty = reading([]);
  empty.end();
  expect(await empty.result).toEqual({ ok: true, body: Buffer.alloc(0) });
});

test('a body as large as the limit is taken; one byte more is refused at once, and no more is read', async () => {
  const exact = reading([600, 400], { limit: 1000 });
  exact.end();
  expect(await exact.result).toMatchObject({ ok: true });
  const over = reading([600, 401], { limit: 1000, length: null });
  expect(await over.result).toMatchObject({ ok: false, code: 'body_too_large' });
  expect(over.request.isPaused()).toBe(true);
  expect(over.request.listenerCount('data')).toBe(0);
});

/** The length of a body is known, or not: two readers. */
const READERS = [
  ['declared', 3000],
  ['unknown', null],
] as const;

test.each(READERS)(
  'what is held is counted and given back when it is released: length %s',
  async (_, length) => {
    const { result, memory, budget } = reading([1000], { max: 2000, length });
    expect(budget.used).toBe(1256);
    memory.release();
    expect(budget.used).toBe(0);
    const crowded = reading([1000, 1000], { max: 2000, length });
    expect(await crowded.result).toMatchObject({ ok: false, code: 'overloaded' });
    // The piece without room is not counted.
    expect(crowded.budget.used).toBe(1256);
    crowded.memory.release();
    crowded.memory.release();
    expect(crowded.budget.used).toBe(0);
    expect(await Promise.race([result, Promise.resolve('open')])).toBe('open');
  },
);

test.each([
  ['declared', {}],
  ['unknown', { length: null }],
])('64 pieces may be small, more must be of 256 bytes on average: length %s', async (_, options) => {
  const few = reading(
    Array.from({ length: 64 }, () => 1),
    options,
  );
  few.end();
  expect(await few.result).toMatchObject({ ok: true });
  const many = reading(
    Array.from({ length: 65 }, () => 255),
    options,
  );
  expect(await many.result).toMatchObject({ ok: false, code: 'body_in_pieces' });
  expect(many.request.isPaused()).toBe(true);
  const larger = reading(
    Array.from({ length: 2000 }, () => 256),
    options,
  );
  larger.end();
  expect(await larger.result).toMatchObject({ ok: true });
});

test.each([
  ['close', 10],
  ['error', 10],
  ['close', null],
  ['error', null],
])('a sender that is gone before the end (%s) leaves nothing, length %s', async (event, length) => {
  const { request, result } = reading([5], { length });
  request.emit(event, new Error('made-up'));
  expect(await result).toEqual({ ok: false, code: 'gone' });
  // Later events of the request have no listeners.
  expect(['data', 'end', 'close', 'error'].map((name) => request.listenerCount(name))).toEqual([0, 0, 0, 0]);
});

test.each(READERS)(
  'reading that is stopped lets the body go, and can be stopped twice: length %s',
  async (_, length) => {
    const { request, result } = reading([5], { length });
    stopReading(request as unknown as IncomingMessage, 'too slow');
    expect(await result).toEqual({ ok: false, code: 'gone' });
    expect(() => stopReading(request as unknown as IncomingMessage, 'too slow')).not.toThrow();
  },
);
