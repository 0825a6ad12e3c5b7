import type { ObjectStore } from '../core/storage.ts';
import { Delivery } from '../deliver/delivery.ts';
import { Dispatcher } from '../deliver/dispatcher.ts';
import { LiveSinks } from '../deliver/live-sinks.ts';
import type { Stop } from '../lib/parts.ts';
import { openStore as openPlace } from '../storage/open.ts';
import { EarlierArchives } from './earlier-archives.ts';
import type { System } from './system.ts';

export function makeDelivery(system: System): void {
  const { plan, config, journal, store, take, users, clock, log, meter, proof, tracing } = system;
  const { retryInitial, retryMax, giveUpAfter, sendTimeout, downAfter, maxPending, maxPendingBytes } =
    config.delivery;
  // Of a log that others write to, nothing says what came before an erasure.
  const before = system.shared === null ? store.lastSeq : Infinity;
  const dispatcher = new Dispatcher({
    journal: store,
    clock,
    log,
    retry: { initial: retryInitial, max: retryMax, giveUpAfter },
    sendTimeout,
    downAfter,
    maxPending,
    maxPendingBytes,
    targetsOf: (event) => system.delivery.routes.targetsOf(event),
    routes: () => system.delivery.routes,
    // What comes from now on was looked at when it came in, but for dead letters that are retried.
    isErased: (event) => (event.seq <= before || event.handling.only !== undefined) && users.has(event),
    observer: meter,
    tracing,
  });
  // Where there is no way into the journal, sinks make no events.
  const inlet = journal === null ? {} : { inlet: { fields: () => plan.value.config.envelope, take } };
  const isOptional = (name: string): boolean => plan.value.config.sinks[name]?.required === false;
  const stores = (url: string): Promise<ObjectStore> => openPlace(url, config.storage);
  const isErased = users.has.bind(users);
  const context = { log, clock, proof, isErased, openStore: stores, ...inlet };
  const sinks = new LiveSinks(dispatcher, context, isOptional);
  system.earlier = new EarlierArchives(system);
  system.dispatcher = dispatcher;
  system.sinks = sinks;
  system.delivery = new Delivery({ plan, dispatcher, sinks, routes: store, journal, isErased, clock, log });
}

export async function openSinks({ delivery, shared }: System): Promise<Stop> {
  await delivery.start();
  await shared?.startKeeper();
  return (signal) => delivery.stop(signal);
}

export function finishEarlier({ earlier }: System): Stop {
  earlier.start();
  return earlier.stop;
}
