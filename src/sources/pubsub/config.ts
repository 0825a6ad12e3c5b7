import { z } from 'zod';
import type { OptionsSchema } from '../../core/sink.ts';
import { parseOptionsWith, writtenSchema } from '../../lib/parse-options.ts';
import { duration, size } from '../../lib/unit-schemas.ts';
import { parseBytes, parseDuration } from '../../lib/units.ts';
import { connectionFields } from '../../sinks/pubsub/connection.ts';

const MINIMUM_TIMEOUT = 100;
const MINIMUM_BYTES = 1024;
const SUBSCRIPTION = /^(projects\/[^/]+\/subscriptions\/)?(?!goog)[A-Za-z][\w.~+%-]{2,254}$/;

const schema = z.strictObject({
  ...connectionFields,
  /** Its name, or `projects/…/subscriptions/…`. Give this reader one of its own: what it reads is acknowledged. */
  subscription: z
    .string()
    .regex(SUBSCRIPTION, 'must be a subscription name of 3 to 255 characters, or projects/…/subscriptions/…'),
  /** How much is held here and not yet taken, at most; the service keeps the rest. */
  held: z
    .strictObject({
      messages: z.int().min(1).default(1000),
      bytes: size.pipe(z.number().min(MINIMUM_BYTES)).default(parseBytes('64MiB')),
    })
    .prefault({}),
  /** How long one operation may take before the connection counts as lost. */
  timeout: duration.pipe(z.number().min(MINIMUM_TIMEOUT)).default(parseDuration('15s')),
});

/** What the Pub/Sub source works with; sizes in bytes, times in milliseconds. */
export type PubSubSourceOptions = z.output<typeof schema>;

/** @throws Error that names the key */
export function parseOptions(options: unknown): PubSubSourceOptions {
  return parseOptionsWith(schema, options);
}

/** Of the options as written. */
export function optionsSchema(): OptionsSchema {
  return writtenSchema(schema);
}
