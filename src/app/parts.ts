import type { Logger } from 'pino';
import type { SqliteJournal } from '../journal/sqlite-journal.ts';
import { orAborted } from '../lib/abort.ts';
import type { Parts, Started } from '../lib/parts.ts';
import { openTraces } from '../observe/metrics/otlp.ts';
import { receiptsPlace } from '../privacy/receipts/place.ts';
import { Receipts } from '../privacy/receipts/receipts.ts';
import { Consumer } from '../sources/consumer.ts';
import { makeReplays, makeSearch, makeStatus, openAdmin } from './admin.ts';
import { type DeliveryParts, makeDelivery, openSinks } from './delivery.ts';
import { makeErasures, startErasures } from './erasures.ts';
import { listen, makeReceiver } from './receiver.ts';
import { openStore, type StoreParts } from './store.ts';
import type { Base } from './system.ts';

/** The store of events, and the parts that will deliver them. */
export async function startStore(base: Base, parts: Parts) {
  const tracing = await parts.start('traces', () =>
    openTraces((detail, message) => base.log.warn(detail, message)),
  );
  let made: DeliveryParts | null = null;
  const stored = await parts.start('store', () => openStore(base, () => made));
  const delivering = await parts.start('delivery', () => makeDelivery(base, stored, tracing));
  made = delivering;
  return { stored, delivering, tracing };
}

/**
 * Starts the parts of a role: each after those that it needs, so that events come in last. The admin listener starts before the
 * sinks are open, and stops after they are flushed.
 */
export async function startAll(base: Base, parts: Parts) {
  const { role } = base;
  const { stored, delivering, tracing } = await startStore(base, parts);
  const receipts = await parts.start('receipts', () => startReceipts(base, stored));
  const erasures = await parts.start('erasures', () => makeErasures(base, stored, delivering));
  const receiving = { ...base, ...stored, ...delivering, receipts };
  const receiver =
    role === 'deliver' ? null : await parts.start('receiver', () => makeReceiver(receiving, tracing));
  const running = { ...receiving, erasures, receiver };
  const status = await parts.start('status', () => makeStatus(running));
  const search = await parts.start('search', () => makeSearch(running));
  const replays = await parts.start('replays', () => makeReplays(base));
  const adminUrl = await parts.start('admin', () => openAdmin(running, { ...status, search, replays }));
  if (role !== 'receive') {
    await parts.start('sinks', () => openSinks(delivering, stored));
    const { earlier } = delivering;
    await parts.start('earlier archives', () => ({ made: earlier.start(), stop: earlier.stop }));
  }
  await parts.start('reloads', () => startReloads(base));
  await parts.start('sources', () => startConsumers(base, stored));
  const url = receiver === null ? '' : await parts.start('endpoint', () => listen(base, receiver, adminUrl));
  await parts.start('due erasures', () => startErasures(base, erasures));
  // `adminUrl` is null without an admin listener, `url` empty where no deliveries come in.
  return { delivery: delivering.delivery, operations: status.operations, adminUrl, url };
}

/** Starts before events come in, and stops when all of them have an entry in the log. */
async function startReceipts(
  { config, clock, log }: Base,
  { journal }: StoreParts,
): Promise<Started<Receipts | null>> {
  if (journal === null) return { made: null };
  const place = await receiptsPlace(config);
  if (place === null) {
    await forgoReceipts(journal, log);
    return { made: null };
  }
  const { interval } = config.receipts;
  const receipts = await Receipts.open({ ...place, journal, clock, log, interval });
  journal.coverReceipts = () => receipts.cover();
  return { made: receipts, stop: () => receipts.stop() };
}

/** Receipts are off: the journal keeps no more events for the log. */
async function forgoReceipts(journal: SqliteJournal, log: Logger): Promise<void> {
  const held = await journal.receipts.upTo();
  if (held !== null && held < journal.lastSeq)
    log.warn(
      { entries: journal.lastSeq - held },
      'receipts are off: the last events have no entry in the log, and can get none once the journal has removed them',
    );
  await journal.receipts.hold(null);
}

/** Waits for a reload to end: a sink that stops while it is reopened would deliver again what is in flight. */
function startReloads({ reloads }: Base): Started<void> {
  const idle = (): Promise<void> => reloads.run(() => Promise.resolve());
  return { made: undefined, stop: (signal) => orAborted(idle(), signal) };
}

/** Starts reading every source; one that cannot be reached is opened again in the background. */
async function startConsumers(
  { plan, clock, log }: Base,
  { store, take }: StoreParts,
): Promise<Started<void>> {
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
