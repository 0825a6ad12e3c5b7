import { z } from 'zod';
import type { SourceDescription } from '../../core/source.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { bytes, count, duration } from '../../lib/fields.ts';
import { connectionFields, PACKAGES } from '../../vendors/pubsub/connection.ts';

const MINIMUM_TIMEOUT = 100;
const MINIMUM_BYTES = 1024;
const SUBSCRIPTION = /^(projects\/[^/]+\/subscriptions\/)?(?!goog)[A-Za-z][\w.~+%-]{2,254}$/;

const schema = z.strictObject({
  ...connectionFields,
  subscription: z
    .string()
    .regex(SUBSCRIPTION, 'must be a subscription name of 3 to 255 characters, or projects/…/subscriptions/…')
    .describe(
      'Its name, or `projects/…/subscriptions/…`. Use a separate one for this consumer: it acknowledges what it reads.',
    ),
  held: z
    .strictObject({
      messages: count(1000, 'Most messages held here and not yet accepted; the service keeps the rest.', {
        min: 1,
      }),
      bytes: bytes('64MiB', 'Most bytes of those messages.', { min: MINIMUM_BYTES }),
    })
    .prefault({}),
  timeout: duration('15s', 'How long one operation may take before the connection is considered lost.', {
    min: MINIMUM_TIMEOUT,
  }),
});

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** Parsed options of the source; sizes in bytes, times in milliseconds. */
export type PubSubSourceOptions = z.output<typeof schema>;

export function describe(): SourceDescription {
  return { packages: PACKAGES };
}
