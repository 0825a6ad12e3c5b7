import { z } from 'zod';
import type { SinkDescription } from '../../core/sink.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { bytes, duration } from '../../lib/fields.ts';
import { batchField, compressionField, MINIMUM_EVENT } from '../broker.ts';
import { connectionFields, packagesFor, readConnection } from '../../vendors/event-hubs/connection.ts';

const MINIMUM_TIMEOUT = 100;

const schema = z
  .strictObject({
    ...connectionFields,
    compression: compressionField('content-encoding'),
    timeout: duration('15s', 'How long one operation may take before its events are sent again.', {
      min: MINIMUM_TIMEOUT,
    }),
    maxEventBytes: bytes(
      '1MiB',
      "Largest message, with its properties, after compression. The hub's own limit applies if it is smaller.",
      { min: MINIMUM_EVENT },
    ),
    batch: batchField,
  })
  .transform(({ compression, timeout, maxEventBytes, batch, ...fields }, context) => {
    return { ...readConnection(fields, context), compression, timeout, maxEventBytes, batch };
  });

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** Sizes in bytes, times in milliseconds; `hub` is the default one, or null. */
export type EventHubsOptions = z.output<typeof schema>;

export function describe(written: Readonly<Record<string, unknown>>): SinkDescription {
  return { packages: packagesFor(written) };
}
