import { isRecord } from '../lib/is-record.ts';

/** Where a value stands in the config: `['routes', 0, 'match']`. */
export type Path = readonly (string | number)[];

/** Something wrong with the value at `path`; the message completes the sentence "`key` …". */
export interface Problem {
  readonly path: Path;
  readonly message: string;
  /** The key that was probably meant, as users read it. */
  readonly suggestion?: string;
  /** The variable that the value came from, if it did. */
  readonly env?: string;
  /** The module of a sink cannot be loaded. */
  readonly unloadable?: boolean;
}

/** A path as users read it: `routes[0].match`. The empty path is the file itself. */
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

/** A copy of the value with every text inside replaced; keys stay as they are. */
export function mapTexts(
  value: unknown,
  replace: (text: string, path: Path) => unknown,
  path: Path = [],
): unknown {
  if (typeof value === 'string') return replace(value, path);
  if (Array.isArray(value)) return value.map((item, index) => mapTexts(item, replace, [...path, index]));
  if (!isMapping(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, mapTexts(item, replace, [...path, key])]),
  );
}

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;
