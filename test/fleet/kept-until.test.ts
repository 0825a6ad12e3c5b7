import { expect, test } from 'vitest';
import { keptUntilBy } from '../../src/journal/kafka/erasure.ts';

const NOW = Date.UTC(2026, 10, 22);
const DAY = String(86_400_000);

test.each([
  // What is appended a day after it can lie in the same segment, which is kept for two days after that.
  [
    { 'retention.ms': String(2 * 86_400_000), 'segment.ms': DAY },
    'until 2026-11-25T00:06:00.000Z at the latest',
  ],
  [
    { 'retention.ms': DAY, 'segment.ms': DAY, 'file.delete.delay.ms': '0' },
    'until 2026-11-24T00:05:00.000Z at the latest',
  ],
  [{}, 'until 2026-12-06T00:06:00.000Z at the latest'],
  [{ 'retention.ms': '-1' }, 'for ever (retention.ms is -1)'],
  [{ 'retention.ms': '9223372036854775807' }, 'for more than a hundred years'],
  [{ 'cleanup.policy': 'compact' }, 'until they compact it (max.compaction.lag.ms sets no end)'],
  [
    { 'cleanup.policy': 'compact', 'max.compaction.lag.ms': DAY, 'segment.ms': DAY },
    'until 2026-11-24T00:00:00.000Z',
  ],
])('of %j the receipt says: %s', (settings, text) => {
  expect(keptUntilBy(new Map(Object.entries(settings)), NOW)).toBe(text);
});
