import { expect, test } from 'vitest';
import { Cell } from '../../src/lib/live.ts';

test('a live value tells its listeners in order, each after the one before is done', async () => {
  const cell = new Cell(1);
  const told: string[] = [];
  cell.subscribe(async (value) => {
    await Promise.resolve();
    told.push(`first ${value}, reads ${cell.value}`);
  });
  cell.subscribe((value) => void told.push(`second ${value}`));
  await cell.replace(2);
  expect(told).toEqual(['first 2, reads 2', 'second 2']);
});

test('a listener that fails ends the telling, and the value is the new one', async () => {
  const cell = new Cell(1);
  const told: number[] = [];
  cell.subscribe(() => Promise.reject(new Error('full')));
  cell.subscribe((value) => void told.push(value));
  await expect(cell.replace(2)).rejects.toThrow('full');
  expect([told, cell.value]).toEqual([[], 2]);
});
