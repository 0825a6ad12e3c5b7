import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longest, longest first, so that none of them begins when all others are done. */
const SLOW = [
  'console/console',
  'backfill/backfill',
  'process/config-changes',
  'process/own-sink-at-fault',
  'process/archive-folder-at-fault',
  'process/workers',
  'sources/event-hubs-shared',
  'campaign/campaign',
  'sinks/pubsub-emulator',
  'process/newcomer',
  'process/brokers',
  'sinks/event-hubs-faults',
  'sinks/files-crash',
  'sinks/event-hubs-contract',
  'process/disk-full',
];

/** Vitest knows how long files took from an earlier run here. A fresh clone has had none, and would go by size. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = SLOW.findIndex((file) => moduleId.endsWith(`/test/${file}.test.ts`));
  return place === -1 ? SLOW.length : place;
}
