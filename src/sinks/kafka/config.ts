import { z } from 'zod';
import type { SinkDescription } from '../../core/sink.ts';
import { bytes, choice, duration, flag, optionalText } from '../../lib/fields.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { parseBytes } from '../../lib/units.ts';
import { batchField, compressionField, MINIMUM_EVENT } from '../broker.ts';
import { connectionFields, isTopic, PACKAGES, readConnection } from '../../vendors/kafka/connection.ts';

const MINIMUM_TIMEOUT = 300;
/** The largest message that Event Hubs takes. */
const EVENT_HUBS_MOST = parseBytes('1MiB');

const schema = z
  .strictObject({
    ...connectionFields,
    topic: optionalText('The default topic, when the route names none. Topics are never created.').refine(
      (name) => name === null || isTopic(name),
      'must be 1 to 249 letters, digits, dots, dashes and underscores',
    ),
    compression: compressionField('content-encoding'),
    codec: choice(
      ['none', 'gzip', 'snappy', 'lz4', 'zstd'],
      'none',
      'Compresses whole batches, as Kafka clients do; consumers do not notice. Useful with `compression: never`.',
    ),
    idempotent: flag(
      true,
      'Lets the broker recognise a batch that is sent again. Only brokers that cannot need `false`; then a lost answer can leave a message twice, with one idempotency key.',
    ),
    maxEventBytes: bytes(
      '1MiB',
      'Largest message, with key and headers, and largest batch; at most what the topic takes (`max.message.bytes`).',
      { min: MINIMUM_EVENT, max: parseBytes('64MiB') },
    ),
    timeout: duration('15s', 'How long one operation may take before its events are sent again.', {
      min: MINIMUM_TIMEOUT,
    }),
    batch: batchField,
  })
  .transform(({ brokers, tls, sasl, ...options }, context) => {
    const refuse = (option: string, message: string): void =>
      context.addIssue({ code: 'custom', path: [option], message });
    const connection = readConnection({ brokers, tls, sasl }, (issue) => context.addIssue(issue));
    if (connection.eventHubs) {
      if (options.idempotent) refuse('idempotent', 'must be false: Event Hubs does not promise it');
      if (options.codec !== 'none' && options.codec !== 'gzip')
        refuse('codec', 'must be none or gzip: Event Hubs takes no other');
      if (options.maxEventBytes > EVENT_HUBS_MOST)
        refuse('maxEventBytes', 'must be at most 1MiB: Event Hubs takes no larger message');
    }
    return { connection, ...options };
  });

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** Sizes in bytes, times in milliseconds; `topic` is the default one, or null. */
export type KafkaOptions = z.output<typeof schema>;

export function describe(): SinkDescription {
  return { packages: PACKAGES };
}
