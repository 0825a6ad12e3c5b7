import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longest, longest first, so that none of them begins when all others are done. */
const SLOW = [
  'fleet/pauses',
  'fleet/faults',
  'fleet/losses',
  'fleet/sealed',
  'console/console',
  'export/store',
  'process/workers',
  'process/config-changes',
  'archive/compact-places',
  'warehouse/ten-thousand',
  'archive/s3',
  'fleet/fleet',
  'load/kill',
  'torture/torture',
  'process/archive-folder-at-fault',
  'process/own-sink-at-fault',
  'load/load',
  'warehouse/incremental',
  'process/package',
  'process/newcomer',
  'console/actions',
  'sinks/files-crash',
  'sources/event-hubs-shared',
  'load/bigquery-faults',
  'export/store-erasure',
  'sinks/kafka',
  'process/receipts',
  'campaign/campaign',
  'process/demo-store',
  'sinks/pubsub-emulator',
  'storage/faults',
  'process/sealed',
  'simulation/simulation',
  'process/found-by-itself',
  'process/shutdown',
  'process/command-line',
  'process/one-owner',
  'backfill/backfill',
  'model/model',
  'erase/archive',
  'sources/pubsub',
  'process/traces',
  'fleet/reconcile',
  'process/store-kills',
  'process/demo-fleet',
  'backfill/removal',
  'warehouse/answers',
  'erase/crash',
  'console/search',
  'sinks/files-store-kill',
  'process/waiting-events',
  'sources/kafka',
  'process/shared-source',
  'process/lost-output',
  'load/changed-types',
  'process/brokers',
  'console/sql',
  'replay/read-ahead',
  'sandbox/sandbox',
  'process/admin-token',
  'erase/spelt',
  'archive/compact',
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
