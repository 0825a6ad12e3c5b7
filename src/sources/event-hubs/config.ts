import { z } from 'zod';
import type { OptionsSchema } from '../../core/sink.ts';
import { parseOptionsWith, writtenSchema } from '../../lib/parse-options.ts';
import { duration } from '../../lib/unit-schemas.ts';
import { parseDuration } from '../../lib/units.ts';
import { connectionFields, readConnection } from '../../sinks/event-hubs/connection.ts';
import { readStorage, storageFields } from './storage.ts';

const MINIMUM_TIMEOUT = 100;
const MINIMUM_CLAIM = 1000;

const blobStorage = z
  .strictObject({
    type: z.literal('blob-storage'),
    ...storageFields,
    /** A worker that has not been heard of for so long has lost its partitions; every sixth of it each one looks. */
    takeOverAfter: duration.pipe(z.number().min(MINIMUM_CLAIM)).default(parseDuration('1m')),
  })
  .transform(({ type, takeOverAfter, container, ...fields }, context) => {
    return { type, storage: readStorage(fields, context), container, takeOverAfter };
  });

const checkpoints = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('journal') }),
  blobStorage,
]);

const schema = z
  .strictObject({
    ...connectionFields,
    /** Give this reader a group of its own: others that read along in the same group take part of the messages' credit. */
    consumerGroup: z.string().min(1).default('$Default'),
    /** Where to begin in a partition that has never been read: with all the hub still holds, or with what comes next. */
    start: z.enum(['earliest', 'latest']).default('earliest'),
    /** `journal` for one worker, which reads all partitions; `blob-storage` for several, which share them. */
    checkpoints: z.preprocess(asMapping, checkpoints).prefault('journal'),
    /** How long one operation may take before the connection counts as lost. */
    timeout: duration.pipe(z.number().min(MINIMUM_TIMEOUT)).default(parseDuration('15s')),
  })
  .transform(({ consumerGroup, start, checkpoints: places, timeout, ...fields }, context) => {
    const { connection, hub } = readConnection(fields, context);
    if (hub === null) {
      context.addIssue({ code: 'custom', path: ['hub'], message: 'must name the Event Hub to read' });
      return z.NEVER;
    }
    return { connection, hub, consumerGroup, start, checkpoints: places, timeout };
  });

/** What the Event Hubs source works with; times in milliseconds. */
export type EventHubsSourceOptions = z.output<typeof schema>;

/** The checkpoints that several workers share; times in milliseconds. */
export type BlobCheckpoints = z.output<typeof blobStorage>;

/** @throws Error that names the key, and never quotes a connection string */
export function parseOptions(options: unknown): EventHubsSourceOptions {
  return parseOptionsWith(schema, options);
}

/** `journal` is short for `{ type: journal }`. */
function asMapping(value: unknown): unknown {
  return typeof value === 'string' ? { type: value } : value;
}

/** Of the options as written. */
export function optionsSchema(): OptionsSchema {
  return writtenSchema(schema);
}

export function needsJournal({ checkpoints: written }: Readonly<Record<string, unknown>>): string | null {
  if (typeof written === 'object') return null;
  return 'its checkpoints lie in the journal, or checkpoints of type blob-storage';
}
