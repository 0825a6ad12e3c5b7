import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { parseYaml, ConfigError, locate } from '../../config/problem.ts';
import { problemsOf } from '../../config/issues.ts';
import { substitute } from '../../config/substitute.ts';
import { writtenSchema } from '../../lib/parse-options.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Destination, Route } from '../../sandbox/etl.ts';

/** A pipeline of `--etl FILE`. */
export interface EtlDestination extends Destination {
  /** Options of the sink of the same type, not checked yet. */
  readonly connection: Readonly<Record<string, unknown>>;
  /** Event Hubs only: folder of bodies that are too large for a hub; null drops them. */
  readonly blobs: string | null;
}

const TYPES = { 'event-hubs': 'event_hubs', pubsub: 'pubsub' } as const;

const regex = z.string().transform((text, context) => {
  try {
    return new RegExp(text, 'u');
  } catch {
    context.addIssue({ code: 'custom', message: 'is not a regular expression' });
    return z.NEVER;
  }
});

function routesTo(field: 'event_hub' | 'topic') {
  return z
    .array(
      z
        .strictObject({
          event_type_prefix: z.string().optional(),
          event_type_regex: regex.optional(),
          [field]: z.string().min(1),
        })
        .transform((route, context): Route => {
          const { event_type_prefix: prefix, event_type_regex: pattern } = route;
          const to = String((route as Readonly<Record<string, unknown>>)[field]);
          if (typeof prefix === 'string' && pattern === undefined) return { eventTypePrefix: prefix, to };
          if (pattern instanceof RegExp && prefix === undefined) return { eventTypeRegex: pattern, to };
          context.addIssue({
            code: 'custom',
            message: 'needs event_type_prefix or event_type_regex, and not both',
          });
          return z.NEVER;
        }),
    )
    .default([]);
}

const metadata = z.enum(['hyphens', 'underscores']).default('hyphens');

const DESTINATION = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('event-hubs'),
    hub: z.string().min(1),
    routes: routesTo('event_hub'),
    metadata,
    blobs: z.string().min(1).optional(),
  }),
  z.looseObject({
    type: z.literal('pubsub'),
    topic: z.string().min(1),
    ordering: z.boolean().default(false),
    routes: routesTo('topic'),
    metadata,
  }),
]);

const FILE = z.strictObject({ destinations: z.record(z.string().min(1), DESTINATION) });

/**
 * Reads the pipelines of a sandbox. `${NAME}` is a variable, as in the config; relative folders are beside the file.
 * @throws MillraceError config_missing; config_invalid with every problem, a line each
 */
export function readEtl(
  file: string,
  env: Readonly<Record<string, string | undefined>>,
): readonly EtlDestination[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new MillraceError('config_missing', `${file}: ${messageOf(error)}`, { cause: error });
  }
  const source = parseYaml(text, file);
  const { value, unset } = substitute(source.value, env, (path) => readFileSync(path, 'utf8'));
  const parsed = FILE.safeParse(value ?? {});
  const issues = parsed.success ? [] : problemsOf([], parsed.error, writtenSchema(FILE));
  const problems = [...unset, ...issues].map((problem) => locate(source, problem));
  if (!parsed.success || problems.length > 0) throw new ConfigError('config_invalid', problems);
  return Object.entries(parsed.data.destinations).map(([name, found]) => {
    const { type, routes, metadata: spelling, ...rest } = found;
    const { blobs, ...connection } = { blobs: undefined, ...rest };
    return {
      name,
      kind: TYPES[type],
      fallback: String('hub' in found ? found.hub : found.topic),
      routes,
      separator: spelling === 'hyphens' ? '-' : '_',
      connection,
      ...(found.type === 'pubsub' ? { ordering: found.ordering } : {}),
      blobs: typeof blobs === 'string' ? resolve(dirname(file), blobs) : null,
    };
  });
}
