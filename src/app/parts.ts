import type { Tracing } from '../core/tracing.ts';
import { orAborted } from '../lib/abort.ts';
import type { Parts, Started } from '../lib/parts.ts';
import { openTraces } from '../observe/metrics/otlp.ts';
import { Consumer } from '../sources/consumer.ts';
import { makeReplays, makeSearch, openAdmin } from './admin.ts';
import { type Delivering, makeDelivery, openSinks } from './delivery.ts';
import { makeErasures, startErasures } from './erasures.ts';
import { startReceipts } from './receipts.ts';
import { listen, makeReceiver } from './receiver.ts';
import { makeStatus } from './status.ts';
import { type Kept, openStore } from './store.ts';
import type { Base } from './system.ts';

/** What events wait in, and what will take them to the sinks. */
export async function startStore(base: Base, parts: Parts) {
  const tracing = await parts.start('traces', () => startTraces(base));
  let made: Delivering | null = null;
  const kept = await parts.start('store', () => openStore(base, () => made));
  const delivering = await parts.start('delivery', () => makeDelivery(base, kept, tracing));
  made = delivering;
  return { kept, delivering, tracing };
}

/**
 * Starts all that runs in a role, innermost first: what takes events in begins when all it stands on does. The admin listener is
 * there before the sinks are open, and until they are flushed.
 */
export async function startAll(base: Base, parts: Parts) {
  const { role } = base;
  const { kept, delivering, tracing } = await startStore(base, parts);
  const receipts = await parts.start('receipts', () => startReceipts(base, kept));
  const erasures = await parts.start('erasures', () => makeErasures(base, kept, delivering));
  const receiving = { ...base, ...kept, ...delivering, receipts };
  const receiver =
    role === 'deliver' ? null : await parts.start('receiver', () => makeReceiver(receiving, tracing));
  const running = { ...receiving, erasures, receiver };
  const told = await parts.start('status', () => makeStatus(running));
  const search = await parts.start('search', () => makeSearch(running));
  const replays = await parts.start('replays', () => makeReplays(base));
  const adminUrl = await parts.start('admin', () => openAdmin(running, { ...told, search, replays }));
  if (role !== 'receive') {
    await parts.start('sinks', () => openSinks(delivering, kept));
    const { earlier } = delivering;
    await parts.start('earlier archives', () => ({ made: earlier.start(), stop: earlier.stop }));
  }
  await parts.start('reloads', () => startReloads(base));
  await parts.start('sources', () => startConsumers(base, kept));
  const url = receiver === null ? '' : await parts.start('endpoint', () => listen(base, receiver, adminUrl));
  await parts.start('due erasures', () => startErasures(base, erasures));
  // Without an admin listener its address is null; the other is empty where no deliveries come in.
  return { delivery: delivering.delivery, operations: told.operations, adminUrl, url };
}

async function startTraces({ log }: Base): Promise<Started<Tracing | undefined>> {
  const { tracing, stop } = await openTraces((detail, message) => log.warn(detail, message));
  return { made: tracing ?? undefined, stop };
}

/** Stopping a sink while a reload exchanges it would cut off what is in flight, and that would be delivered again. */
function startReloads({ reloads }: Base): Started<void> {
  const idle = (): Promise<void> => reloads.run(() => Promise.resolve());
  return { made: undefined, stop: (signal) => orAborted(idle(), signal) };
}

/** Starts reading every source; a source that cannot be reached is tried again in the background. */
async function startConsumers({ plan, clock, log }: Base, { store, take }: Kept): Promise<Started<void>> {
  const around = { clock, log, checkpoints: store.checkpoints };
  const made = plan.value.sources.map(async ({ name, module, options }) => {
    const source = (await module.load()).createSource(options, { name, ...around });
    return new Consumer({ name, source, deliver: (batch) => take(name, batch), ...around });
  });
  const consumers = await Promise.all(made);
  for (const consumer of consumers) consumer.start();
  const stop = async (signal: AbortSignal): Promise<void> => {
    for (const consumer of consumers.toReversed()) await consumer.stop(signal);
  };
  return { made: undefined, stop };
}
