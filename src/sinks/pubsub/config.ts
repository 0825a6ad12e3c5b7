import { z } from 'zod';
import type { SinkDescription } from '../../core/sink.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { bytes, duration, flag } from '../../lib/fields.ts';
import { parseBytes } from '../../lib/units.ts';
import { compressionField, MINIMUM_EVENT } from '../broker.ts';
import { connectionFields, PACKAGES } from '../../vendors/pubsub/connection.ts';
import { isTopic } from './topic.ts';

/** The service's limit for one publish request, and so for one event: body, attributes and topic. */
const REQUEST = '10MB';
const MINIMUM_TIMEOUT = 100;

const schema = z.strictObject({
  ...connectionFields,
  topic: z
    .string()
    .refine(isTopic, 'must be a topic name of 3 to 255 characters, or projects/…/topics/…')
    .nullable()
    .default(null)
    .describe(
      'Default topic for routes that name none. Write a topic of another project as `projects/…/topics/…`.',
    ),
  ordering: flag(false, 'Uses the user id as ordering key, and sends the events of one user in order.'),
  compression: compressionField('blob-codec'),
  maxEventBytes: bytes(
    REQUEST,
    'Largest request for one event, with its attributes, after compression. The service takes 10 MB.',
    { min: MINIMUM_EVENT, max: parseBytes(REQUEST) },
  ),
  timeout: duration('15s', 'How long one request may take before its events are sent again.', {
    min: MINIMUM_TIMEOUT,
  }),
});

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** Sizes in bytes, times in milliseconds; `topic` is the default one, or null. */
export type PubSubOptions = z.output<typeof schema>;

export function describe(): SinkDescription {
  return { packages: PACKAGES };
}
