import { z } from 'zod';
import type { SinkDescription } from '../../core/sink.ts';
import { flag, NOT_EMPTY, text } from '../../lib/fields.ts';
import { RESOURCE_FIELDS } from '../../history/written-resources.ts';
import { PATH_FIELDS } from '../../history/service/paths.ts';
import { optionsOf } from '../../lib/parse-options.ts';

const schema = z.strictObject({
  path: z.string().min(1).describe('Folder of the tables; each pull gets its own subfolder.'),
  baseUrl: z
    .string()
    .regex(/^https?:\/\/\S+$/, 'must be an http or https URL')
    .describe("Address of the service's API."),
  apiKey: z.string().min(1).describe('Team API key.'),
  apiKeyHeader: text('x-service-api-key', 'Header that carries the key.', NOT_EMPTY),
  paths: z
    .strictObject({ mealSummary: PATH_FIELDS.mealSummary, parsingJob: PATH_FIELDS.parsingJob })
    .prefault({} as never),
  resources: RESOURCE_FIELDS,
  events: flag(
    false,
    'Whether each pulled item, or group of samples, also becomes an event, of the source `follow-up`, routed like any other.',
  ),
});

export const { parseOptions, optionsSchema } = optionsOf(schema);

export type FollowUpOptions = z.output<typeof schema>;

export function describe({ path, events }: Readonly<Record<string, unknown>>): SinkDescription {
  const needsJournal = { option: 'events', reason: 'the events go into the journal' };
  return {
    folders: typeof path === 'string' ? [{ path, option: 'path', erase: true }] : [],
    ...(events === true ? { needsJournal } : {}),
  };
}
