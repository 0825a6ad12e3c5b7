import type { Stop } from '../lib/parts.ts';
import { Consumer } from '../sources/consumer.ts';
import type { System } from './system.ts';

/** Starts reading every source; a source that cannot be reached is tried again in the background. */
export function startConsumers(system: System): Stop {
  const { plan, clock, log, store, take } = system;
  const parts = { clock, log, checkpoints: store.checkpoints };
  const consumers = plan.value.sources.map(({ name, module, options }) => {
    const source = module.createSource(options, { name, ...parts });
    return new Consumer({ name, source, deliver: (batch) => take(name, batch), ...parts });
  });
  for (const consumer of consumers) consumer.start();
  return async (signal) => {
    for (const consumer of consumers.toReversed()) await consumer.stop(signal);
  };
}
