import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longest, longest first, so that none of them begins when all others are done. */
const SLOW = [
  'fleet/pauses',
  'fleet/faults',
  'fleet/losses',
  'load/kill',
  'fleet/sealed',
  'fleet/fleet',
  'console/console',
  'process/config-changes',
  'process/own-sink-at-fault',
  'process/newcomer',
  'export/store-erasure',
  'process/archive-folder-at-fault',
  'export/store',
  'process/workers',
  'load/load',
  'archive/compact-places',
  'console/actions',
  'process/package',
  'process/demo-fleet',
  'backfill/backfill',
  'sources/event-hubs-shared',
  'torture/torture',
  'warehouse/ten-thousand',
  'erase/archive',
  'warehouse/incremental',
  'sinks/files-crash',
  'campaign/campaign',
  'process/sealed',
  'storage/faults',
  'process/receipts',
  'sinks/pubsub-emulator',
  'console/search',
  'load/bigquery-faults',
  'process/receipts-quarantine',
  'erase/crash',
  'deploy/guides',
  'admin/replays',
  'process/delivered',
  'console/sql',
  'delta/erase',
  'process/receipts-faults',
  'process/journal-owner',
  'sandbox/sandbox',
  'sinks/kafka',
  'process/disk-full',
  'process/odd-events',
  'process/store-kills',
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
