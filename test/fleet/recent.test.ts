import { expect, test } from 'vitest';
import { Recent, recentName } from '../../src/journal/kafka/recent.ts';

const of = (kind: string, source: string, key: string, body: string): string =>
  recentName(kind, source, key, Buffer.from(body));

test('what was confirmed of late is known, and no more than two generations of it', () => {
  const recent = new Recent(100);
  for (let n = 0; n < 1000; n += 1) {
    recent.add(String(n));
    for (let back = 0; back < 100 && back <= n; back += 1) expect(recent.has(String(n - back))).toBe(true);
    expect(recent.has(String(n - 200))).toBe(false);
  }
});

test('other bytes, another source or another kind are another name', () => {
  const names = [
    of('accepted', 'a', 'bc', 'x'),
    of('accepted', 'ab', 'c', 'x'),
    of('accepted', 'a', 'bc', 'y'),
    of('quarantined', 'a', 'bc', 'x'),
  ];
  expect(new Set(names).size).toBe(names.length);
  expect(of('accepted', 'a', 'bc', 'x')).toBe(names[0]);
});
