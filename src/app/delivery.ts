import type { ObjectStore } from '../core/storage.ts';
import type { Tracing } from '../core/tracing.ts';
import { PlanRunner } from '../deliver/plan-runner.ts';
import { Dispatcher } from '../deliver/dispatcher.ts';
import { LiveSinks } from '../deliver/live-sinks.ts';
import type { Started } from '../lib/parts.ts';
import { openStore as openPlace } from '../storage/open.ts';
import { EarlierArchives } from './earlier-archives.ts';
import type { Kept } from './store.ts';
import type { Base } from './system.ts';

/** What takes events out of the store. */
export interface Delivering {
  readonly dispatcher: Dispatcher;
  readonly sinks: LiveSinks;
  readonly delivery: PlanRunner;
  readonly earlier: EarlierArchives;
}

export function makeDelivery(base: Base, kept: Kept, tracing: Tracing | undefined): Started<Delivering> {
  const { plan, config, users, clock, log, meter, proof } = base;
  const { journal, store, shared, take } = kept;
  const { retryInitial, retryMax, giveUpAfter, sendTimeout, downAfter, maxPending, maxPendingBytes } =
    config.delivery;
  // Of a log that others write to, nothing says what came before an erasure.
  const before = shared === null ? store.lastSeq : Infinity;
  const dispatcher = new Dispatcher({
    journal: store,
    clock,
    log,
    retry: { initial: retryInitial, max: retryMax, giveUpAfter },
    sendTimeout,
    downAfter,
    maxPending,
    maxPendingBytes,
    targetsOf: (event) => delivery.routes.targetsOf(event),
    routes: () => delivery.routes,
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
  const delivery = new PlanRunner({ plan, dispatcher, sinks, routes: store, journal, isErased, clock, log });
  return { made: { dispatcher, sinks, delivery, earlier: new EarlierArchives(base) } };
}

export async function openSinks({ delivery }: Delivering, { shared }: Kept): Promise<Started<void>> {
  await delivery.start();
  await shared?.startKeeper();
  return { made: undefined, stop: (signal) => delivery.stop(signal) };
}
