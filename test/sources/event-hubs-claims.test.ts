import type { PartitionOwnership } from '@azure/event-hubs';
import { expect, test } from 'vitest';
import { Claims } from '../../src/sources/event-hubs/claims.ts';
import { MemoryStore, PLACE } from './event-hubs-support.ts';

const HUB = ['host', 'events', '$Default'] as const;
const ours = (partitionId: string): PartitionOwnership => ({ ...PLACE, partitionId, ownerId: 'us' });

test('a partition belongs to another from the look that shows it until it is claimed here', async () => {
  const store = new MemoryStore();
  const claims = new Claims({ store, owner: 'us', firstOf: null });
  store.owners.set('0', 'them').set('1', 'us').set('2', '');
  expect(claims.belongsToAnother('0')).toBe(false);
  await claims.listOwnership(...HUB);
  expect(['0', '1', '2', '3'].map((id) => claims.belongsToAnother(id))).toEqual([true, false, false, false]);
  await claims.claimOwnership([ours('0')]);
  expect(claims.belongsToAnother('0')).toBe(false);
});

test('a partition of ours that was lost looks free until it is claimed again; the store keeps the claim', async () => {
  const store = new MemoryStore();
  const claims = new Claims({ store, owner: 'us', firstOf: null });
  store.owners.set('0', 'us').set('1', 'us').set('2', 'them');
  for (const id of ['0', '2']) claims.leave(id);
  const owners = async (): Promise<string[]> =>
    (await claims.listOwnership(...HUB)).map(({ ownerId }) => ownerId);
  expect(await owners()).toEqual(['', 'us', 'them']);
  expect(store.owners.get('0')).toBe('us');
  await claims.claimOwnership([ours('0')]);
  expect(await owners()).toEqual(['us', 'us', 'them']);
});

test('the first offset of a partition is saved by the worker that has just claimed it, and never moves a checkpoint', async () => {
  const store = new MemoryStore();
  const asked: string[] = [];
  const firstOf = (partition: string): Promise<{ offset: string; sequenceNumber: number }> => {
    asked.push(partition);
    return Promise.resolve({ offset: '700', sequenceNumber: 7 });
  };
  const claims = new Claims({ store, owner: 'us', firstOf });
  const before = { ...PLACE, partitionId: '1', offset: '100', sequenceNumber: 1 };
  store.checkpoints.set('1', before);
  expect(await claims.listCheckpoints(...HUB)).toEqual([before]);
  await claims.claimOwnership([ours('0'), ours('1')]);
  const first = { ...PLACE, partitionId: '0', offset: '700', sequenceNumber: 7 };
  expect(await claims.listCheckpoints(...HUB)).toEqual([before, first]);
  expect([...store.checkpoints.values()]).toEqual([before, first]);
  await claims.listCheckpoints(...HUB);
  expect(asked).toEqual(['0']);
});
