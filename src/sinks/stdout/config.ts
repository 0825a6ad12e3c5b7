import { z } from 'zod';
import type { SinkDescription } from '../../core/sink.ts';
import { optionsOf } from '../../lib/parse-options.ts';

/** No options. */
const schema = z.strictObject({});

export const { parseOptions, optionsSchema } = optionsOf(schema);

export type StdoutOptions = z.output<typeof schema>;

export function describe(): SinkDescription {
  return { writesStdout: true };
}
