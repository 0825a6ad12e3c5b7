import type { Tracing } from '../core/tracing.ts';
import { PlanRunner } from '../deliver/plan-runner.ts';
import type { Started } from '../lib/parts.ts';
import { EarlierArchives } from './earlier-archives.ts';
import type { StoreParts } from './store.ts';
import { type Base, sinkContext } from './system.ts';

export interface DeliveryParts extends Pick<PlanRunner, 'dispatcher' | 'sinks'> {
  readonly delivery: PlanRunner;
  readonly earlier: EarlierArchives;
}

export function makeDelivery(
  base: Base,
  { journal, store, shared, take }: StoreParts,
  tracing: Tracing | undefined,
): Started<DeliveryParts> {
  const { plan, config, clock, log, meter } = base;
  const { retryInitial, retryMax, giveUpAfter, ...limits } = config.delivery;
  // A log that others write to has no order by which an event came before an erasure.
  const before = shared === null ? store.lastSeq : Infinity;
  const context = sinkContext(base);
  const { isErased } = context;
  // With `acknowledge: delivered`, sinks make no events.
  const inlet = journal === null ? {} : { inlet: { fields: () => plan.value.config.envelope, take } };
  const delivery = new PlanRunner({
    plan,
    feeds: {
      ...limits,
      logOf: (sink) => store.logOf(sink),
      clock,
      log,
      retry: { initial: retryInitial, max: retryMax, giveUpAfter },
      // Newer events were checked when they came in, except dead letters that are retried.
      isErased: (event) => (event.seq <= before || event.handling.only !== undefined) && isErased(event),
      observer: meter,
      tracing,
    },
    context: { ...context, ...inlet },
    isOptional: (name) => plan.value.config.sinks[name]?.required === false,
    routes: store,
    journal,
    isErased,
  });
  const { dispatcher, sinks } = delivery;
  return { made: { delivery, dispatcher, sinks, earlier: new EarlierArchives(base) } };
}

export async function openSinks({ delivery }: DeliveryParts, { shared }: StoreParts): Promise<Started<void>> {
  await delivery.start();
  await shared?.startKeeper();
  return { made: undefined, stop: (signal) => delivery.stop(signal) };
}
