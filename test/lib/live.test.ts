import { expect, test } from 'vitest';
import { Cell } from '../../src/lib/live.ts';

test('a live value calls its listeners in order, each after the one before is done', async () => {
  const cell = new Cell(1);
  const calls: string[] = [];
  cell.subscribe(async (value) => {
    await Promise.resolve();
    calls.push(`first ${value}, reads ${cell.value}`);
  });
  cell.subscribe((value) => void calls.push(`second ${value}`));
  await cell.replace(2);
  expect(calls).toEqual(['first 2, reads 2', 'second 2']);
});

test('a listener that fails stops the calls, and the value is the new one', async () => {
  const cell = new Cell(1);
  const calls: number[] = [];
  cell.subscribe(() => Promise.reject(new Error('full')));
  cell.subscribe((value) => void calls.push(value));
  await expect(cell.replace(2)).rejects.toThrow('full');
  expect([calls, cell.value]).toEqual([[], 2]);
});
