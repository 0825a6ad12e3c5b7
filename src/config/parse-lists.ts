import type { z } from 'zod';
import { writtenSchema } from '../lib/parse-options.ts';
import { LISTS, type Requirement, type SinkConfig, type SourceConfig, type WrittenRoute } from './lists.ts';
import { problemsOf } from './issues.ts';
import { isMapping, type Mapping, type Problem } from './paths.ts';

export interface Lists {
  readonly secrets: readonly string[];
  readonly require: readonly Requirement[];
  readonly sinks: Readonly<Record<string, SinkConfig>>;
  readonly sources: Readonly<Record<string, SourceConfig>>;
  /** `null` when the key is absent: everything goes everywhere. */
  readonly routes: readonly WrittenRoute[] | null;
}

/** Reads what lists.ts describes. A part with problems, and a sink or source among the others, comes back as if it were absent, so that the rest can go on. */
export function parseLists(document: Mapping): { values: Lists; problems: Problem[] } {
  const problems: Problem[] = [];
  const read = <T extends z.ZodType>(schema: T, path: readonly string[]): z.output<T> => {
    // An empty key (`routes:` with nothing after it) is an absent one.
    const value = valueAt(document, path) ?? undefined;
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    problems.push(...problemsOf(path, result.error, writtenSchema(schema)));
    const wrong = new Set(result.error.issues.map((issue) => issue.path[0]));
    const rest = isMapping(value) ? Object.entries(value).filter(([name]) => !wrong.has(name)) : [];
    return schema.parse(rest.length === 0 ? undefined : Object.fromEntries(rest));
  };
  const values = {
    secrets: read(LISTS['signing.secrets'], ['signing', 'secrets']),
    require: read(LISTS['envelope.require'], ['envelope', 'require']),
    sinks: read(LISTS.sinks, ['sinks']),
    sources: read(LISTS.sources, ['sources']),
    routes: read(LISTS.routes, ['routes']) ?? null,
  };
  return { values, problems };
}

function valueAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, step) => (isMapping(value) ? value[step] : undefined), document);
}
