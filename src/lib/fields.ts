import { z } from 'zod';
import { formatBytes, formatDuration, parseBytes, parseDuration } from './units.ts';

/**
 * The schema of one value of a config, of type `T` once parsed: how it is written (every kind can be a text, from YAML or the
 * environment), its default as a user would write it, its meaning. Parsers, environment, JSON Schema, `check` and the tables in the
 * docs are made from it.
 */
export type Field<T> = z.ZodPrefault<z.ZodType<T>>;

export type Kind = 'text' | 'texts' | 'flag' | 'count' | 'port' | 'duration' | 'bytes' | 'choice' | 'status';

interface Range {
  readonly min?: number;
  readonly max?: number;
}

interface TextRules {
  /** A source for RegExp, and what to say when it does not match. */
  readonly pattern?: string;
  readonly hint?: string;
  /** Never to be printed. */
  readonly sensitive?: boolean;
}

export const NOT_EMPTY: TextRules = { pattern: String.raw`\S`, hint: 'must not be empty' };
const HOUR = 3_600_000;
/** Range of a time-out. Timers allow at most 2^31-1 ms. */
export const TIMER: Range = { min: 1, max: 24 * HOUR };

export const text = (fallback: string, doc: string, rules: TextRules = {}): Field<string> =>
  field('text', anyText(rules), doc, fallback, rules);

/** Text that may be absent. */
export const optionalText = (doc: string, rules: TextRules = {}): Field<string | null> =>
  field('text', anyText(rules).nullable(), doc, null, rules);

/** A list of texts, also written as one text with commas. */
export const texts = (doc: string): Field<readonly string[]> => {
  const error = 'must be a list of texts';
  return field('texts', z.preprocess(fromText(split), z.array(anyText({}), { error })), doc, []);
};

const BOOLEAN = z.boolean({ error: 'must be true or false' });

export const flag = (fallback: boolean, doc: string): Field<boolean> =>
  field('flag', z.preprocess(fromText(yesOrNo), BOOLEAN), doc, fallback);

/** A flag that may be absent. */
export const optionalFlag = (doc: string): Field<boolean | null> =>
  field('flag', z.preprocess(fromText(yesOrNo), BOOLEAN.nullable()), doc, null);

export const count = (fallback: number, doc: string, range: Range = {}): Field<number> =>
  field('count', whole('a whole number', digits, String, range), doc, fallback);

export const port = (fallback: number, doc: string): Field<number> =>
  field('port', whole('a port', digits, String, { max: 65_535 }), doc, fallback);

/** Milliseconds once parsed. Where the default is seconds or more, a number below 1000 needs a unit: `30` would be 30 ms. */
export const duration = (fallback: string, doc: string, range: Range = {}): Field<number> => {
  const number = whole('a duration such as 500ms, 30s, 5m or 7d', parseDuration, formatDuration, range);
  if (parseDuration(fallback) < 1000) return field('duration', number, doc, fallback);
  const withUnit = z.preprocess((value, context) => {
    const bare = /^\s*(\d*[1-9]\d*)\s*$/.exec(String(value))?.[1];
    if (Number(bare) < 1000) context.addIssue(`${bare} is ${bare} ms: write ${bare}s`);
    return value;
  }, number);
  return field('duration', withUnit, doc, fallback);
};

/** Bytes once parsed. */
export const bytes = (fallback: string, doc: string, range: Range = {}): Field<number> =>
  field('bytes', whole('a size such as 64KiB, 10MB or 1GiB', parseBytes, formatBytes, range), doc, fallback);

export const choice = <const T extends string>(
  options: readonly T[],
  fallback: NoInfer<T>,
  doc: string,
): Field<T> =>
  field('choice', z.enum(options, { error: `must be one of ${options.join(', ')}` }), doc, fallback);

/** One of a few HTTP status codes. */
export const status = <const T extends number>(
  options: readonly T[],
  fallback: NoInfer<T>,
  doc: string,
): Field<T> => {
  const schema = z.literal(options, { error: `must be one of ${options.join(', ')}` });
  return field('status', z.preprocess(fromText(digits), schema), doc, fallback);
};

function field<T>(
  kind: Kind,
  schema: z.ZodType<T>,
  description: string,
  fallback: unknown,
  { sensitive = false }: TextRules = {},
): Field<T> {
  const meta = { kind, description, ...(sensitive ? { sensitive } : {}) };
  return z.prefault(schema, fallback).meta(meta);
}

function anyText({ pattern, hint = 'is not well-formed' }: TextRules): z.ZodString {
  const schema = z.string({ error: 'must be text (put it in quotes)' });
  return pattern === undefined ? schema : schema.regex(new RegExp(pattern), { error: hint });
}

/** A whole number, or a text that `parse` turns into one. */
function whole(
  what: string,
  parse: (value: string) => unknown,
  show: (value: number) => string,
  { min = 0, max = Number.MAX_SAFE_INTEGER }: Range,
): z.ZodType<number> {
  const number = z
    .int({ error: `must be ${what}` })
    .min(min, { error: `must be at least ${show(min)}` })
    .max(max, { error: `must be at most ${show(max)}` });
  return z.preprocess(fromText(parse), number);
}

function split(value: string): string[] {
  return value.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()]));
}

function yesOrNo(value: string): unknown {
  return value === 'true' ? true : value === 'false' ? false : value;
}

function digits(value: string): unknown {
  return /^\d+$/.test(value.trim()) ? Number(value) : value;
}

/** An invalid text is left unchanged, so that the schema reports it. */
function fromText(parse: (value: string) => unknown): (value: unknown) => unknown {
  return (value) => {
    if (typeof value !== 'string') return value;
    try {
      return parse(value);
    } catch {
      return value;
    }
  };
}

/** A mapping that may be absent, because all of its keys have defaults. */
export const section = <const T extends z.core.$ZodLooseShape>(shape: T) =>
  z.strictObject(shape, { error: 'must be a mapping of keys to values' }).prefault({} as never);
