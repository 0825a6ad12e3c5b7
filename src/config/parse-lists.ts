import type { z } from 'zod';
import {
  ITEM_KEYS,
  LISTS,
  type Requirement,
  type SinkConfig,
  type SourceConfig,
  type WrittenRoute,
} from './lists.ts';
import { unknownKey } from './nearest.ts';
import { isMapping, type Mapping, type Path, type Problem } from './paths.ts';

export interface Lists {
  readonly secrets: readonly string[];
  readonly require: readonly Requirement[];
  readonly sinks: Readonly<Record<string, SinkConfig>>;
  readonly sources: Readonly<Record<string, SourceConfig>>;
  /** `null` when the key is absent: everything goes everywhere. */
  readonly routes: readonly WrittenRoute[] | null;
}

/** Reads what lists.ts describes. A part with problems comes back as if it were absent, so that the rest can go on. */
export function parseLists(document: Mapping): { values: Lists; problems: Problem[] } {
  const problems: Problem[] = [];
  const read = <T extends z.ZodType>(
    schema: T,
    path: readonly string[],
    known: readonly string[] = [],
  ): z.output<T> => {
    // An empty key (`routes:` with nothing after it) is an absent one.
    const result = schema.safeParse(valueAt(document, path) ?? undefined);
    if (result.success) return result.data;
    problems.push(...result.error.issues.flatMap((issue) => problemsOf(issue, path, known)));
    return schema.parse(undefined);
  };
  const values = {
    secrets: read(LISTS['signing.secrets'], ['signing', 'secrets']),
    require: read(LISTS['envelope.require'], ['envelope', 'require'], ITEM_KEYS.require),
    sinks: read(LISTS.sinks, ['sinks']),
    sources: read(LISTS.sources, ['sources']),
    routes: read(LISTS.routes, ['routes'], ITEM_KEYS.routes) ?? null,
  };
  return { values, problems };
}

function problemsOf(issue: z.core.$ZodIssue, root: Path, known: readonly string[]): Problem[] {
  const path = [...root, ...issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step))];
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey([...path, key], known));
  if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => ({ path, message }));
  return [{ path, message: issue.message }];
}

function valueAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, step) => (isMapping(value) ? value[step] : undefined), document);
}
