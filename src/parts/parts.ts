import { orAborted } from '../lib/abort.ts';
import type { Part, Stop } from '../lib/parts.ts';
import { openTraces } from '../metrics/otlp.ts';
import { Consumer } from '../sources/consumer.ts';
import { makeSearch, makeReplays, openAdmin } from './admin.ts';
import { finishEarlier, makeDelivery, openSinks } from './delivery.ts';
import { makeErasures, startErasures } from './erasures.ts';
import { startReceipts } from './receipts.ts';
import { makeReceiver, listen } from './receiver.ts';
import { makeStatus } from './status.ts';
import { openStore } from './store.ts';
import type { Role, System } from './system.ts';

/**
 * All that runs, in the order in which it starts; it stops in the reverse. Innermost first: what takes events in begins
 * when all it stands on does. The admin listener is there before the sinks are open, and until they are flushed.
 */
export const PARTS: readonly Part<System>[] = [
  { name: 'traces', start: startTraces },
  { name: 'store', start: openStore },
  { name: 'receipts', start: startReceipts },
  { name: 'delivery', start: makeDelivery },
  { name: 'erasures', start: makeErasures },
  { name: 'receiver', start: makeReceiver },
  { name: 'status', start: makeStatus },
  { name: 'search', start: makeSearch },
  { name: 'replays', start: makeReplays },
  { name: 'admin', start: openAdmin },
  { name: 'sinks', start: openSinks },
  { name: 'earlier archives', start: finishEarlier },
  { name: 'reloads', start: startReloads },
  { name: 'sources', start: startConsumers },
  { name: 'endpoint', start: listen },
  { name: 'due erasures', start: startErasures },
];

async function startTraces(system: System): Promise<Stop> {
  const { tracing, stop } = await openTraces((detail, message) => system.log.warn(detail, message));
  system.tracing = tracing ?? undefined;
  return stop;
}

/** Stopping a sink while a reload exchanges it would cut off what is in flight, and that would be delivered again. */
function startReloads({ reloads }: System): Stop {
  return (signal) =>
    orAborted(
      reloads.run(() => Promise.resolve()),
      signal,
    );
}

/** Starts reading every source; a source that cannot be reached is tried again in the background. */
async function startConsumers(system: System): Promise<Stop> {
  const { plan, clock, log, store, take } = system;
  const parts = { clock, log, checkpoints: store.checkpoints };
  const made = plan.value.sources.map(async ({ name, module, options }) => {
    const source = (await module.load()).createSource(options, { name, ...parts });
    return new Consumer({ name, source, deliver: (batch) => take(name, batch), ...parts });
  });
  const consumers = await Promise.all(made);
  for (const consumer of consumers) consumer.start();
  return async (signal) => {
    for (const consumer of consumers.toReversed()) await consumer.stop(signal);
  };
}

/** Parts that one half of a fleet does without. */
const WITHOUT: Readonly<Record<Role, readonly string[]>> = {
  receive: ['sinks', 'earlier archives'],
  deliver: ['receiver', 'endpoint'],
};

/** What runs in a role. */
export function partsOf(role: Role | undefined): readonly Part<System>[] {
  return role === undefined ? PARTS : PARTS.filter(({ name }) => !WITHOUT[role].includes(name));
}
