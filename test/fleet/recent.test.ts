import { expect, test } from 'vitest';
import { Recent, recentName, type Name } from '../../src/journal/kafka/recent.ts';

const of = (kind: string, source: string, key: string, body: string): Name =>
  recentName(kind, source, key, Buffer.from(body));

const NAMES = Array.from({ length: 1000 }, (_, n) => of('accepted', 'a', String(n), 'x'));
const NEVER = of('accepted', 'a', 'never', 'x');
const named = (n: number): Name => NAMES[n] ?? NEVER;

test('what was confirmed of late is known, and no more than two generations of it', () => {
  const recent = new Recent(100);
  const wrong: string[] = [];
  for (let n = 0; n < 1000; n += 1) {
    recent.add(named(n));
    for (let back = 0; back < 100 && back <= n; back += 1)
      if (!recent.has(named(n - back))) wrong.push(`${n - back} is forgotten after ${n}`);
    if (recent.has(named(n - 200))) wrong.push(`${n - 200} is known after ${n}`);
  }
  expect(wrong).toEqual([]);
});

test('other bytes, another source or another kind are another name', () => {
  const names = [
    of('accepted', 'a', 'bc', 'x'),
    of('accepted', 'ab', 'c', 'x'),
    of('accepted', 'a', 'bc', 'y'),
    of('quarantined', 'a', 'bc', 'x'),
  ];
  expect(new Set(names.map(String)).size).toBe(names.length);
  expect(of('accepted', 'a', 'bc', 'x')).toEqual(names[0]);
});
