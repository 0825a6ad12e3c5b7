import type convict from 'convict';
import { formatBytes, formatDuration, parseBytes, parseDuration } from '../lib/units.ts';
import type { Format, Leaf } from './leaf.ts';

interface FormatRules {
  /** Throws an Error that completes the sentence "`key` …". */
  validate(value: unknown, leaf: Leaf<unknown>): void;
  /** Turns text, from YAML or the environment, into the value; text it cannot read is left for `validate`. */
  coerce(value: string): unknown;
}

/** What each format of a leaf accepts. convict's own coercions are not used: they read `12abc` as 12 and `no` as true. */
const FORMATS: Readonly<Record<Format, FormatRules>> = {
  text: {
    validate: (value, leaf) => {
      demand(typeof value === 'string', 'must be text (put it in quotes)');
      demand(
        leaf.pattern === null || new RegExp(leaf.pattern).test(value),
        leaf.hint ?? 'is not well-formed',
      );
    },
    coerce: (value) => value,
  },
  texts: {
    validate: (value) =>
      demand(
        Array.isArray(value) && value.every((item) => typeof item === 'string'),
        'must be a list of texts',
      ),
    coerce: (value) =>
      value
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
  },
  flag: {
    validate: (value) => demand(typeof value === 'boolean', 'must be true or false'),
    coerce: (value) => (value === 'true' ? true : value === 'false' ? false : value),
  },
  count: { validate: whole('a whole number', String), coerce: digits },
  port: { validate: whole('a port', String), coerce: digits },
  duration: {
    validate: whole('a duration such as 500ms, 30s, 5m or 7d', formatDuration),
    coerce: (value) => attempt(parseDuration, value),
  },
  bytes: {
    validate: whole('a size such as 64KiB, 10MB or 1GiB', formatBytes),
    coerce: (value) => attempt(parseBytes, value),
  },
  choice: { validate: oneOf, coerce: (value) => value },
  status: { validate: oneOf, coerce: digits },
};

/** FORMATS as convict wants them. Its registry is global; registering again changes nothing. */
export function convictFormats(): Record<string, convict.Format> {
  return Object.fromEntries(
    Object.entries(FORMATS).map(([name, rules]) => [
      name,
      {
        validate: (value: unknown, schema: convict.SchemaObj & Leaf<unknown>) =>
          rules.validate(value, schema),
        coerce: (value: string) => rules.coerce(value),
      },
    ]),
  );
}

function whole(what: string, show: (value: number) => string): FormatRules['validate'] {
  return (value, leaf) => {
    demand(typeof value === 'number' && Number.isSafeInteger(value), `must be ${what}`);
    demand(value >= leaf.min, `must be at least ${show(leaf.min)}`);
    demand(value <= leaf.max, `must be at most ${show(leaf.max)}`);
  };
}

function oneOf(value: unknown, leaf: Leaf<unknown>): void {
  demand(
    (typeof value === 'string' || typeof value === 'number') && leaf.options.includes(value),
    `must be one of ${leaf.options.join(', ')}`,
  );
}

function digits(value: string): unknown {
  return /^\d+$/.test(value.trim()) ? Number(value) : value;
}

function attempt(parse: (value: string) => number, value: string): unknown {
  try {
    return parse(value);
  } catch {
    return value;
  }
}

function demand(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}
