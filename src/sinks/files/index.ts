import type { Sink, SinkContext } from '../../core/sink.ts';
import type { FilesOptions } from './config.ts';
import { FilesSink } from './sink.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSink(options: FilesOptions, context: SinkContext): Sink {
  return new FilesSink(options, context);
}
