/**
 * One scalar key of the config: its default, its meaning and how it is written. Everything else about the key (parser,
 * type, environment variable, JSON Schema, reference table) is derived from this.
 */
export interface Leaf<T> {
  readonly format: Format;
  /** As a user would write it: `5m`, `10MiB`; `null` when there is none. */
  readonly default: string | number | boolean | readonly string[] | null;
  /** One or two sentences for the reference. */
  readonly doc: string;
  readonly nullable: boolean;
  readonly sensitive: boolean;
  /** Only for `choice` and `status`. */
  readonly options: readonly (string | number)[];
  /** In the format's own unit: milliseconds, bytes or a plain count. */
  readonly min: number;
  readonly max: number;
  /** A source for RegExp, and what to say when it does not match. Only for `text`. */
  readonly pattern: string | null;
  readonly hint: string | null;
  /** Never set: carries the type of the parsed value. */
  readonly parsed?: T;
}

export type Format =
  'text' | 'texts' | 'flag' | 'count' | 'port' | 'duration' | 'bytes' | 'choice' | 'status';

/** The parsed shape of a tree of leaves. */
export type Parsed<Tree> = {
  readonly [Key in keyof Tree]: Tree[Key] extends Leaf<infer T> ? T : Parsed<Tree[Key]>;
};

interface Range {
  readonly min?: number;
  readonly max?: number;
}

const HOUR = 3_600_000;
/** Timers cannot hold more than 2^31-1 ms; a day is beyond any sense for a time-out. */
export const TIMER: Range = { min: 1, max: 24 * HOUR };

export const text = (fallback: string, doc: string, pattern?: string, hint?: string): Leaf<string> =>
  leaf('text', fallback, doc, { pattern: pattern ?? null, hint: hint ?? null });

/** Text that may be left out. */
export const optionalText = (doc: string, extra: Partial<Leaf<string>> = {}): Leaf<string | null> =>
  leaf<string | null>('text', null, doc, { ...extra, nullable: true });

/** A list of strings; comma-separated in the environment. */
export const texts = (doc: string): Leaf<readonly string[]> => leaf('texts', [], doc);

export const flag = (fallback: boolean, doc: string): Leaf<boolean> => leaf('flag', fallback, doc);

export const count = (fallback: number, doc: string, range: Range = {}): Leaf<number> =>
  leaf('count', fallback, doc, range);

export const port = (fallback: number, doc: string): Leaf<number> =>
  leaf('port', fallback, doc, { max: 65_535 });

/** Milliseconds once parsed. */
export const duration = (fallback: string, doc: string, range: Range = {}): Leaf<number> =>
  leaf('duration', fallback, doc, range);

/** Bytes once parsed. */
export const bytes = (fallback: string, doc: string, range: Range = {}): Leaf<number> =>
  leaf('bytes', fallback, doc, range);

export const choice = <const T extends string>(options: readonly T[], fallback: T, doc: string): Leaf<T> =>
  leaf('choice', fallback, doc, { options });

/** One of a few HTTP status codes. */
export const status = <const T extends number>(options: readonly T[], fallback: T, doc: string): Leaf<T> =>
  leaf('status', fallback, doc, { options });

function leaf<T>(
  format: Format,
  fallback: Leaf<T>['default'],
  doc: string,
  extra: Partial<Leaf<T>> = {},
): Leaf<T> {
  return {
    format,
    default: fallback,
    doc,
    nullable: false,
    sensitive: false,
    options: [],
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    pattern: null,
    hint: null,
    ...extra,
  };
}
