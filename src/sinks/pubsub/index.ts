import type { Sink, SinkContext } from '../../core/sink.ts';
import type { PubSubOptions } from './config.ts';
import { PubSubSink } from './sink.ts';

export { parseOptions, optionsSchema } from './config.ts';

export function createSink(options: PubSubOptions, context: SinkContext): Sink {
  return new PubSubSink(options, context);
}
