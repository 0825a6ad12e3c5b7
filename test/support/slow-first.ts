import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longest, longest first, so that none of them begins when all others are done. */
const SLOW = [
  'load/kill',
  'backfill/backfill',
  'console/console',
  'process/config-changes',
  'fleet/fleet',
  'export/store-erasure',
  'export/store',
  'archive/compact-places',
  'process/own-sink-at-fault',
  'process/newcomer',
  'process/package',
  'campaign/campaign',
  'process/archive-folder-at-fault',
  'load/load',
  'process/workers',
  'sinks/kafka',
  'warehouse/ten-thousand',
  'sources/event-hubs-shared',
  'load/bigquery-faults',
  'process/receipts',
  'sinks/files-crash',
  'process/demo-fleet',
  'process/journal-owner',
  'sinks/pubsub-emulator',
  'process/odd-events',
  'warehouse/incremental',
  'torture/torture',
  'storage/faults',
  'erase/crash',
  'erase/archive',
  'process/store-kills',
  'process/sealed',
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
