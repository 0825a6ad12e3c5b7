import { expect, test } from 'vitest';
import { dangersIn, type TopicUse } from '../../src/journal/kafka/topics.ts';

const DAY = 86_400_000;
const use = (keeps: TopicUse['keeps'], least?: number): Omit<TopicUse, 'topic'> => ({
  keeps,
  maxBytes: 1000,
  ...(least === undefined ? {} : { least }),
});

test.each([
  ['all', { 'cleanup.policy': 'compact' }, /only the last event/],
  ['all', { 'cleanup.policy': 'compact,delete' }, /only the last event/],
  ['all', { 'cleanup.policy': 'delete', 'retention.bytes': '1000' }, /that a sink has not had/],
  ['all', { 'max.message.bytes': '999' }, /cannot be kept/],
  ['all', { 'unclean.leader.election.enable': 'true' }, /unclean/],
  ['all', { 'min.insync.replicas': '1' }, /one broker alone/],
  ['until taken out', { 'cleanup.policy': 'delete' }, /waits for a person/],
  ['until taken out', { 'cleanup.policy': 'compact,delete' }, /waits for a person/],
  ['ids', { 'cleanup.policy': 'delete', 'retention.ms': String(DAY - 1) }, /retention\.ms/],
  ['ids', { 'cleanup.policy': 'compact,delete', 'retention.ms': String(DAY - 1) }, /retention\.ms/],
  ['ids', { 'cleanup.policy': 'delete', 'retention.bytes': '1' }, /ids are forgotten/],
  ['ids', { 'max.message.bytes': '999' }, /reads the events themselves/],
] as const)('%s: %j is warned of', (keeps, settings, warning) => {
  expect(dangersIn(new Map(Object.entries(settings)), use(keeps, DAY))).toEqual([
    expect.stringMatching(warning) as unknown,
  ]);
});

test.each([
  ['all', { 'cleanup.policy': 'delete', 'retention.ms': '1', 'retention.bytes': '-1' }],
  ['all', { 'min.insync.replicas': '2', 'max.message.bytes': '1000' }],
  ['until taken out', { 'cleanup.policy': 'compact', 'retention.bytes': '1' }],
  ['ids', { 'cleanup.policy': 'delete', 'retention.ms': String(DAY) }],
  ['ids', { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'min.insync.replicas': '1' }],
  // The same chunk again has the same ids.
  ['ids', { 'cleanup.policy': 'compact', 'retention.ms': '1' }],
  ['all', {}],
  ['ids', {}],
] as const)('%s: %j is as it should be', (keeps, settings) => {
  expect(dangersIn(new Map(Object.entries(settings)), use(keeps, keeps === 'ids' ? DAY : undefined))).toEqual(
    [],
  );
});
