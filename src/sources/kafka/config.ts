import { z } from 'zod';
import type { SourceDescription } from '../../core/source.ts';
import { bytes, choice, duration, NOT_EMPTY, text } from '../../lib/fields.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { connectionFields, PACKAGES, readConnection, isTopic } from '../../vendors/kafka/connection.ts';

const MINIMUM_TIMEOUT = 300;
const MINIMUM_SESSION = 1000;

const schema = z
  .strictObject({
    ...connectionFields,
    topic: z
      .string({ error: 'must be set, to the topic to read' })
      .refine(isTopic, 'must be 1 to 249 letters, digits, dots, dashes and underscores')
      .describe('The topic to read.'),
    group: text(
      'millrace',
      'Consumer group: consumers of one group share the partitions, and the broker keeps how far the group has read.',
      NOT_EMPTY,
    ),
    start: choice(
      ['earliest', 'latest'],
      'earliest',
      'Where to begin in a partition of which the group has read nothing, or whose next message is deleted: at the oldest message, or at the next new one.',
    ),
    fetchBytes: bytes('8MiB', 'Most bytes that one broker is asked for at a time.', { min: 65_536 }),
    session: duration('30s', 'A consumer that is silent for this long loses its partitions to the others.', {
      min: MINIMUM_SESSION,
    }),
    timeout: duration('15s', 'How long one operation may take before the connection is considered lost.', {
      min: MINIMUM_TIMEOUT,
    }),
  })
  .transform(({ brokers, tls, sasl, ...options }, context) => {
    const connection = readConnection({ brokers, tls, sasl }, (issue) => context.addIssue(issue));
    return { connection, ...options };
  });

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** Parsed options of the source: sizes in bytes, times in milliseconds. */
export type KafkaSourceOptions = z.output<typeof schema>;

export function describe(): SourceDescription {
  return { packages: PACKAGES };
}
