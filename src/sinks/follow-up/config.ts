import { z } from 'zod';
import type { OptionsSchema, SinkDescription } from '../../core/sink.ts';
import { parseOptionsWith, writtenSchema } from '../../lib/parse-options.ts';

const schema = z.strictObject({
  /** Folder of the tables; each pull has a folder of its own below it. */
  path: z.string().min(1),
  /** Address of the service's API. */
  baseUrl: z.string().regex(/^https?:\/\/\S+$/, 'must be an http or https URL'),
  /** Team API key. */
  apiKey: z.string().min(1),
  apiKeyHeader: z.string().min(1).default('x-service-api-key'),
  /** Whether every meal also becomes an event of its own, routed like any other. */
  events: z.boolean().default(false),
});

/** What the follow-up sink works with. */
export type FollowUpOptions = z.output<typeof schema>;

/** @throws Error that names the key */
export function parseOptions(options: unknown): FollowUpOptions {
  return parseOptionsWith(schema, options);
}

/** Of the options as written. */
export function optionsSchema(): OptionsSchema {
  return writtenSchema(schema);
}

/** Tables below its folder. */
export function describe({ path, events }: Readonly<Record<string, unknown>>): SinkDescription {
  const needsJournal = { option: 'events', reason: 'the events go into the journal' };
  return {
    folders: typeof path === 'string' ? [{ path, option: 'path', erase: true }] : [],
    ...(events === true ? { needsJournal } : {}),
  };
}
