import { readFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { messageOf } from '../core/errors.ts';
import { isCalendarDay } from '../lib/calendar-day.ts';
import { usageError } from './io.ts';

/** What help says of an option, and what else it is than a flag or a text. */
export interface Spec<T> {
  readonly description: string;
  readonly set: (option: Option) => Option;
  /** The type of its value alone. */
  readonly value?: T;
}

/**
 * The options of a command, in the order in which help lists them: `--dry-run` is a flag, `--out <file>` a text, which are
 * undefined when they are left out. A description alone is enough for these.
 */
export type OptionTable = Readonly<Record<string, string | Spec<unknown>>>;

/** The name of an option's value, as commander makes it: `--dry-run` is `dryRun`. */
type NameOf<Flags> = Flags extends `--${infer Long} ${string}`
  ? Camel<Long>
  : Flags extends `--no-${infer Long}`
    ? Camel<Long>
    : Flags extends `--${infer Long}`
      ? Camel<Long>
      : never;

type Camel<Long extends string> = Long extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Long;

type ValueOf<Flags, Given> =
  Given extends Spec<infer T>
    ? T
    : Flags extends `${string} ${string}`
      ? string | undefined
      : Flags extends `--no-${string}`
        ? boolean
        : boolean | undefined;

/** What a command is given of its options. */
export type OptionsOf<Table extends OptionTable> = {
  readonly [Flags in keyof Table as NameOf<Flags>]: ValueOf<Flags, Table[Flags]>;
};

/** A command with its options; what it is, takes and does is added to it. */
export function commandOf(name: string, options: OptionTable, help: string): Command {
  const command = new Command(name).addHelpText('after', help);
  for (const [flags, given] of Object.entries(options)) {
    const spec = typeof given === 'string' ? plain(given) : given;
    command.addOption(spec.set(new Option(flags, spec.description)));
  }
  return command;
}

function plain(description: string): Spec<unknown> {
  return special(description, (option) => option);
}

/** An option that is none of those below. */
export function special<T>(description: string, set: Spec<T>['set']): Spec<T> {
  return { description, set };
}

/** A text, or what else a specification says, without which a command line is refused. */
export function required(given: string): Spec<string>;
export function required<T>(given: Spec<T | undefined>): Spec<T>;
export function required(given: string | Spec<unknown>): Spec<unknown> {
  const { description, set } = typeof given === 'string' ? plain(given) : given;
  return special(description, (option) => set(option).makeOptionMandatory());
}

/** A text; `fallback` is what holds when it is left out. */
export function textOr(fallback: string, description: string): Spec<string> {
  return special(description, (option) => option.default(fallback));
}

/** May be repeated. */
export function repeated(description: string): Spec<readonly string[] | undefined>;
export function repeated(description: string, fallback: readonly []): Spec<readonly string[]>;
export function repeated(description: string, fallback?: readonly []): Spec<unknown> {
  return special(description, (option) => option.argParser(added).default(fallback));
}

function added(one: string, before: readonly string[] = []): readonly string[] {
  return [...before, one];
}

type Read<T> = (text: string) => T;

/** Is read as the command line is taken apart. @param fallback its text when it is left out */
export function readBy<T>(read: Read<T>, description: string): Spec<T | undefined>;
export function readBy<T>(read: Read<T>, description: string, fallback: string): Spec<T>;
export function readBy(read: Read<unknown>, description: string, fallback?: string): Spec<unknown> {
  return special(description, (option) => {
    option.argParser((text) => readAs(option.long ?? option.flags, text, read));
    return fallback === undefined ? option : option.default(read(fallback), fallback);
  });
}

/** One of some words. */
export function oneOf<T extends string>(words: readonly T[], description: string): Spec<T | undefined>;
export function oneOf<T extends string>(words: readonly T[], description: string, fallback: T): Spec<T>;
export function oneOf(words: readonly string[], description: string, fallback?: string): Spec<unknown> {
  return special(description, (option) => option.choices(words).default(fallback));
}

/** @throws MillraceError usage that names the option and what it was given */
export function readAs<T>(name: string, text: string, read: (text: string) => T): T {
  try {
    return read(text);
  } catch (error) {
    throw usageError(`${name} ${text}: ${messageOf(error)}`, { cause: error });
  }
}

/** Numbers from `least` to `most`, both included. */
export function number(least = 0, most = Infinity, kind: 'number' | 'whole number' = 'number') {
  return (text: string): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    const fits = kind === 'number' ? Number.isFinite(value) : Number.isSafeInteger(value);
    if (fits && value >= least && value <= most) return value;
    const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new RangeError(`must be a ${kind} ${range}`);
  };
}

export function wholeNumber(least = 0, most = Infinity) {
  return number(least, most, 'whole number');
}

/** Milliseconds since the epoch of a day or a date-time, UTC where it names no zone. */
export function instant(text: string): number {
  const hasZone = DAY.test(text) || /(Z|[+-]\d{2}:?\d{2})$/.test(text);
  const at = isCalendarDay(text.slice(0, 10)) ? Date.parse(hasZone ? text : `${text}Z`) : Number.NaN;
  if (at >= 0) return at;
  throw new RangeError('must be a day or time, such as 2026-11-21 or 2026-11-21T10:00:00Z');
}

/** The same for the end of a span: a day is all of that day. */
export function endInstant(text: string): number {
  return instant(text) + (DAY.test(text) ? 86_400_000 : 0);
}

/** As the archive writes times, to compare with those. */
export function isoOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

export function httpUrl(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text;
  throw new TypeError('must be a URL of http or https');
}

export function textOf(file: string): string {
  return readFileSync(file, 'utf8');
}

/** Of commands that write rows, and of those that can write to a URL. */
export const LOADED_AT = {
  '--loaded-at <time>': readBy(instant, 'value of _loaded_at in every row (default: when the run began)'),
};
export const WORK = {
  '--work <folder>': 'with a URL: local folder for what is not finished (default: ./data/work/<URL>)',
};
