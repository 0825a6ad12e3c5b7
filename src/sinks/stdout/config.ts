import { z } from 'zod';
import type { OptionsSchema, SinkDescription } from '../../core/sink.ts';
import { parseOptionsWith, writtenSchema } from '../../lib/parse-options.ts';

/** Nothing to set: the records go where the process's output goes. */
const schema = z.strictObject({});

export type StdoutOptions = z.output<typeof schema>;

/** @throws Error that names the key */
export function parseOptions(options: unknown): StdoutOptions {
  return parseOptionsWith(schema, options);
}

/** Of the options as written. */
export function optionsSchema(): OptionsSchema {
  return writtenSchema(schema);
}

export function describe(): SinkDescription {
  return { writesStdout: true };
}
