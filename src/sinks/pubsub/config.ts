import { z } from 'zod';
import type { OptionsSchema } from '../../core/sink.ts';
import { parseOptionsWith, writtenSchema } from '../../lib/parse-options.ts';
import { duration, size } from '../../lib/unit-schemas.ts';
import { parseDuration } from '../../lib/units.ts';
import { connectionFields } from './connection.ts';
import { isTopic } from './topic.ts';

/** What the service takes in one publish request, and so for one event: body, attributes and topic, bytes. */
const REQUEST_BYTES = 10_000_000;
const MINIMUM_EVENT = 4096;
const MINIMUM_TIMEOUT = 100;

const schema = z.strictObject({
  ...connectionFields,
  /**
   * Where events go whose route names no topic; optional when every route names one. A topic of another project is
   * written `projects/…/topics/…`.
   */
  topic: z
    .string()
    .refine(isTopic, 'must be a topic name of 3 to 255 characters, or projects/…/topics/…')
    .nullable()
    .default(null),
  /** Gives every message its user's id as ordering key, and sends what belongs to one user in order. */
  ordering: z.boolean().default(false),
  /** `auto` compresses bodies above 1 KiB with gzip and says so in `blob-codec`. */
  compression: z.enum(['auto', 'always', 'never']).default('auto'),
  /** Largest request for one event, with its attributes, after compression. The service takes 10 MB. */
  maxEventBytes: size.pipe(z.number().min(MINIMUM_EVENT).max(REQUEST_BYTES)).default(REQUEST_BYTES),
  /** How long one request may take before its events are sent again. */
  timeout: duration.pipe(z.number().min(MINIMUM_TIMEOUT)).default(parseDuration('15s')),
});

/** What the Pub/Sub sink works with: sizes in bytes, times in milliseconds; `topic` is the default one, or null. */
export type PubSubOptions = z.output<typeof schema>;

/** @throws Error that names the key */
export function parseOptions(options: unknown): PubSubOptions {
  return parseOptionsWith(schema, options);
}

/** Of the options as written. */
export function optionsSchema(): OptionsSchema {
  return writtenSchema(schema);
}
