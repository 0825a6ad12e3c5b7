import { z } from 'zod';
import { parseOptionsWith } from '../../lib/parse-options.ts';
import { duration } from '../../lib/unit-schemas.ts';
import { parseDuration } from '../../lib/units.ts';
import { connectionFields, readConnection } from '../../sinks/event-hubs/connection.ts';

const MINIMUM_TIMEOUT = 100;

const schema = z
  .strictObject({
    ...connectionFields,
    /** Give this reader a group of its own: others that read along in the same group take part of the messages' credit. */
    consumerGroup: z.string().min(1).default('$Default'),
    /** Where to begin in a partition that has never been read: with all the hub still holds, or with what comes next. */
    start: z.enum(['earliest', 'latest']).default('earliest'),
    /** How long one operation may take before the connection counts as lost. */
    timeout: duration.pipe(z.number().min(MINIMUM_TIMEOUT)).default(parseDuration('15s')),
  })
  .transform(({ consumerGroup, start, timeout, ...fields }, context) => {
    const { connection, hub } = readConnection(fields, context);
    if (hub === null) {
      context.addIssue({ code: 'custom', path: ['hub'], message: 'must name the Event Hub to read' });
      return z.NEVER;
    }
    return { connection, hub, consumerGroup, start, timeout };
  });

/** What the Event Hubs source works with; times in milliseconds. */
export type EventHubsSourceOptions = z.output<typeof schema>;

/** @throws Error that names the key, and never quotes the connection string */
export function parseOptions(options: unknown): EventHubsSourceOptions {
  return parseOptionsWith(schema, options);
}
