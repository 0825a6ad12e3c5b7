import type { Sink, SinkContext } from '../../core/sink.ts';
import type { FollowUpOptions } from './config.ts';
import { FollowUpSink } from './sink.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSink(options: FollowUpOptions, context: SinkContext): Sink {
  return new FollowUpSink(options, context);
}
