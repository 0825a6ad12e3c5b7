import { isRecord } from '../lib/parsed.ts';

/** The position of a value in the config: `['routes', 0, 'match']`. */
export type Path = readonly (string | number)[];

/** A fault of the value at `path`; the message completes the sentence "`key` …". */
export interface Problem {
  readonly path: Path;
  readonly message: string;
  /** The key that was probably meant. */
  readonly suggestion?: string;
  /** The variable that the value came from. */
  readonly env?: string;
  /** Set when the module of a sink cannot be loaded. */
  readonly unloadable?: boolean;
}

/** A path as users write it: `routes[0].match`. The empty path is the file itself. */
export function keyOf(path: Path): string {
  let key = '';
  for (const step of path) {
    if (typeof step === 'number') key += `[${step}]`;
    else key += key === '' ? step : `.${step}`;
  }
  return key;
}

/** Whether a path is `outer` or lies inside it. */
export function within(path: Path, outer: Path): boolean {
  return outer.every((step, index) => path[index] === step);
}

export type Mapping = Record<string, unknown>;

export const isMapping = (value: unknown): value is Mapping => isRecord(value);

/**
 * A copy of a document. `visit` returns the new value for each value, from outside in: the contents of a list or mapping
 * are visited if it is returned as it is, and undefined leaves a value out.
 */
export function mapDocument(
  value: unknown,
  visit: (value: unknown, path: Path) => unknown,
  path: Path = [],
): unknown {
  const result = visit(value, path);
  if (result !== value) return result;
  if (Array.isArray(value))
    return value
      .map((item, index) => mapDocument(item, visit, [...path, index]))
      .filter((item) => item !== undefined);
  if (!isMapping(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, mapDocument(item, visit, [...path, key])]);
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}

export function valueAt(document: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, step) => (isMapping(value) ? value[step] : undefined), document);
}

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;
