import type { Writable } from 'node:stream';
import type { Sink, SinkContext } from '../../core/sink.ts';
import type { StdoutOptions } from './config.ts';
import { StdoutSink } from './sink.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

/** @param stream only tests pass their own */
export function createSink(
  _options: StdoutOptions,
  _context: SinkContext,
  stream: Writable = process.stdout,
): Sink {
  return new StdoutSink(stream);
}
