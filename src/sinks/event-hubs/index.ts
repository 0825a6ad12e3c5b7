import type { Sink, SinkContext } from '../../core/sink.ts';
import type { EventHubsOptions } from './config.ts';
import { EventHubsSink } from './sink.ts';

export { parseOptions, optionsSchema } from './config.ts';

export function createSink(options: EventHubsOptions, context: SinkContext): Sink {
  return new EventHubsSink(options, context);
}
