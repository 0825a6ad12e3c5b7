import { z } from 'zod';
import type { OptionsSchema } from '../../core/sink.ts';
import { parseOptionsWith, writtenSchema } from '../../lib/parse-options.ts';
import { duration, size } from '../../lib/unit-schemas.ts';
import { parseBytes, parseDuration } from '../../lib/units.ts';
import { connectionFields, readConnection } from './connection.ts';

const MINIMUM_TIMEOUT = 100;
const MINIMUM_EVENT = 4096;

const schema = z
  .strictObject({
    ...connectionFields,
    /** `auto` compresses bodies above 1 KiB with gzip and says so in `content-encoding`. */
    compression: z.enum(['auto', 'always', 'never']).default('auto'),
    /** How long one operation may take before its events are sent again. */
    timeout: duration.pipe(z.number().min(MINIMUM_TIMEOUT)).default(parseDuration('15s')),
    /** Largest message, with its properties, after compression. The hub's own limit holds if it is smaller. */
    maxEventBytes: size.pipe(z.number().min(MINIMUM_EVENT)).default(parseBytes('1MiB')),
    /** How much is handed over in one go; a message of the broker's own holds as many of one user as fit. */
    batch: z
      .strictObject({
        count: z.int().min(1).max(10_000).default(500),
        bytes: size.pipe(z.number().min(MINIMUM_EVENT)).default(parseBytes('4MiB')),
      })
      .prefault({}),
  })
  .transform(({ compression, timeout, maxEventBytes, batch, ...fields }, context) => {
    return { ...readConnection(fields, context), compression, timeout, maxEventBytes, batch };
  });

/** What the Event Hubs sink works with: sizes in bytes, times in milliseconds; `hub` is the default one, or null. */
export type EventHubsOptions = z.output<typeof schema>;

/** @throws Error that names the key, and never quotes the connection string */
export function parseOptions(options: unknown): EventHubsOptions {
  return parseOptionsWith(schema, options);
}

/** Of the options as written. */
export function optionsSchema(): OptionsSchema {
  return writtenSchema(schema);
}
