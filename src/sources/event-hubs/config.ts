import { z } from 'zod';
import type { SinkDescription } from '../../core/sink.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { choice, duration, NOT_EMPTY, text } from '../../lib/fields.ts';
import { connectionFields, readConnection } from '../../sinks/event-hubs/connection.ts';
import { readStorage, storageFields } from './storage.ts';

const MINIMUM_TIMEOUT = 100;
const MINIMUM_CLAIM = 1000;

const blobStorage = z
  .strictObject({
    type: z.literal('blob-storage'),
    ...storageFields,
    takeOverAfter: duration(
      '1m',
      'The others take the partitions of a worker that has not been heard of for so long; every sixth of it each one looks.',
      { min: MINIMUM_CLAIM },
    ),
  })
  .transform(({ type, takeOverAfter, container, ...fields }, context) => {
    return { type, storage: readStorage(fields, context), container, takeOverAfter };
  });

const checkpointPlace = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('journal') }),
  blobStorage,
]);

const schema = z
  .strictObject({
    ...connectionFields,
    consumerGroup: text(
      '$Default',
      "Give this reader a group of its own: others in the same group take part of the messages' credit.",
      NOT_EMPTY,
    ),
    start: choice(
      ['earliest', 'latest'],
      'earliest',
      'Where to begin in a partition that has never been read: with all the hub still holds, or with what comes next.',
    ),
    checkpoints: z
      .preprocess(asMapping, checkpointPlace)
      .prefault('journal')
      .describe(
        '`journal`: one worker reads all partitions. A mapping with `type: blob-storage`: several workers share them.',
      ),
    timeout: duration('15s', 'How long one operation may take before the connection counts as lost.', {
      min: MINIMUM_TIMEOUT,
    }),
  })
  .transform(({ consumerGroup, start, checkpoints, timeout, ...fields }, context) => {
    const { connection, hub } = readConnection(fields, context);
    if (hub === null) {
      context.addIssue({ code: 'custom', path: ['hub'], message: 'must name the Event Hub to read' });
      return z.NEVER;
    }
    return { connection, hub, consumerGroup, start, checkpoints, timeout };
  });

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** What the Event Hubs source works with; times in milliseconds. */
export type EventHubsSourceOptions = z.output<typeof schema>;

/** The checkpoints that several workers share; times in milliseconds. */
export type BlobCheckpoints = z.output<typeof blobStorage>;

/** `journal` is short for `{ type: journal }`. */
function asMapping(value: unknown): unknown {
  return typeof value === 'string' ? { type: value } : value;
}

export function describe({
  checkpoints: written,
}: Readonly<Record<string, unknown>>): Pick<SinkDescription, 'needsJournal'> {
  if (typeof written === 'object') return {};
  const reason = 'its checkpoints lie in the journal, or checkpoints of type blob-storage';
  return { needsJournal: { option: 'checkpoints', reason } };
}
