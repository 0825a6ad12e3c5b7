import { describe, expect, test } from 'vitest';
import { BufferPool } from '../../src/lib/buffer-pool.ts';

describe('buffers', () => {
  test('are used again once they are given back, if they are large enough', () => {
    const pool = new BufferPool();
    const small = pool.take(10);
    expect(pool.take(10)).not.toBe(small);
    pool.give(small);
    expect(pool.take(small.length + 1).length).toBeGreaterThan(small.length);
    expect(pool.take(small.length)).toBe(small);
  });

  test('of another size are not kept', () => {
    const pool = new BufferPool();
    const foreign = Buffer.alloc(5000);
    pool.give(foreign);
    for (const bytes of [5000, 4000]) expect(pool.take(bytes) === foreign).toBe(false);
  });

  test('are not kept when they are very large, or very many', () => {
    const pool = new BufferPool();
    const large = pool.take(9_000_000);
    pool.give(large);
    // Not by toBe: it would compare nine million bytes before it says no.
    expect(pool.take(9_000_000) === large).toBe(false);
    const many = Array.from({ length: 100 }, () => pool.take(1_000_000));
    for (const buffer of many) pool.give(buffer);
    const again = new Set(many.map(({ length }) => pool.take(length)));
    const kept = many.filter((buffer) => again.has(buffer)).length;
    expect(kept).toBeGreaterThan(8);
    expect(kept).toBeLessThan(100);
  });
});
