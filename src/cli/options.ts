import { readFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { messageOf } from '../core/errors.ts';
import { isCalendarDay } from '../lib/calendar-day.ts';
import { usageError } from './io.ts';

/** An option that is more than a flag or an optional text. */
export interface Spec<T> {
  readonly description: string;
  readonly set: (option: Option) => Option;
  /** Value of an option that is not given; help does not show it. */
  readonly initial?: T;
}

/**
 * Options of a command by their flags, in the order of the help. A description alone makes `--dry-run` a flag and
 * `--out <file>` an optional text.
 */
export type OptionTable = Readonly<Record<string, string | Spec<unknown>>>;

/** Commander's name of an option: `--dry-run` is `dryRun`. */
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

/** The values that a command gets for its option table. */
export type OptionsOf<Table extends OptionTable> = {
  readonly [Flags in keyof Table as NameOf<Flags>]: ValueOf<Flags, Table[Flags]>;
};

/** A command with its options and the text below its help; the caller adds description, arguments and action. */
export function commandOf(name: string, options: OptionTable, help: string): Command {
  const command = new Command(name).addHelpText('after', help);
  for (const [flags, given] of Object.entries(options)) {
    const { description, set, initial } = typeof given === 'string' ? plain(given) : given;
    const option = set(new Option(flags, description));
    command.addOption(option);
    if (initial !== undefined) command.setOptionValue(option.attributeName(), initial);
  }
  return command;
}

function plain(description: string): Spec<unknown> {
  return special(description, (option) => option);
}

/** An option that commander's own methods describe. */
export function special<T>(description: string, set: Spec<T>['set']): Spec<T> {
  return { description, set };
}

/** An option that the command line must have. */
export function required(given: string): Spec<string>;
export function required<T>(given: Spec<T | undefined>): Spec<T>;
export function required(given: string | Spec<unknown>): Spec<unknown> {
  const { description, set } = typeof given === 'string' ? plain(given) : given;
  return special(description, (option) => set(option).makeOptionMandatory());
}

/** A text with a default. */
export function textOr(fallback: string, description: string): Spec<string> {
  return special(description, (option) => option.default(fallback));
}

/** An option that may be given several times; an empty list without it. @param read checks one value */
export function repeated(description: string, read: Read<string> = (text) => text): Spec<readonly string[]> {
  return {
    description: `${description}; may be repeated`,
    set: (option) =>
      option.argParser((text, before: readonly string[]) => [
        ...before,
        readAs(option.long ?? option.flags, text, read),
      ]),
    initial: [],
  };
}

type Read<T> = (text: string) => T;

/** A value that `read` parses. @param fallback text of the default */
export function readBy<T>(read: Read<T>, description: string): Spec<T | undefined>;
export function readBy<T>(read: Read<T>, description: string, fallback: string): Spec<T>;
export function readBy(read: Read<unknown>, description: string, fallback?: string): Spec<unknown> {
  return special(description, (option) => {
    option.argParser((text) => readAs(option.long ?? option.flags, text, read));
    return fallback === undefined ? option : option.default(read(fallback), fallback);
  });
}

/** One of these words. */
export function oneOf<T extends string>(words: readonly T[], description: string): Spec<T | undefined>;
export function oneOf<T extends string>(words: readonly T[], description: string, fallback: T): Spec<T>;
export function oneOf(words: readonly string[], description: string, fallback?: string): Spec<unknown> {
  return special(description, (option) => option.choices(words).default(fallback));
}

/** @throws MillraceError usage with the option, the text and the reason of `read` */
export function readAs<T>(name: string, text: string, read: (text: string) => T): T {
  try {
    return read(text);
  } catch (error) {
    throw usageError(`${name} ${text}: ${messageOf(error)}`, { cause: error });
  }
}

/** Reads a number from `least` to `most`, both included. */
export function number(least = 0, most = Infinity, kind: 'number' | 'whole number' = 'number') {
  return (text: string): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    const isNumber = kind === 'number' ? Number.isFinite(value) : Number.isSafeInteger(value);
    if (isNumber && value >= least && value <= most) return value;
    const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new RangeError(`must be a ${kind} ${range}`);
  };
}

export function wholeNumber(least = 0, most = Infinity) {
  return number(least, most, 'whole number');
}

/** Milliseconds since the epoch of a day or a time; UTC unless the text names a zone. */
export function instant(text: string): number {
  const hasZone = DAY.test(text) || /(Z|[+-]\d{2}:?\d{2})$/.test(text);
  const at = isCalendarDay(text.slice(0, 10)) ? Date.parse(hasZone ? text : `${text}Z`) : Number.NaN;
  if (at >= 0) return at;
  throw new RangeError('must be a day or time, such as 2026-11-21 or 2026-11-21T10:00:00Z');
}

/** The end of a time range: a day means the whole day. */
export function endInstant(text: string): number {
  return instant(text) + (DAY.test(text) ? 86_400_000 : 0);
}

/** ISO 8601, as archives write times. */
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

/** Text of a file; `-` is standard input. */
export function textOrStdin(file: string): string {
  return readFileSync(file === '-' ? 0 : file, 'utf8');
}

/** Selects records of an archive or a journal. */
export const SELECTION = {
  '--since <time>': readBy(instant, 'only events received at or after this day or time (ISO 8601)'),
  '--until <time>': readBy(endInstant, 'only events received before this time; a day includes the whole day'),
  '--type <prefix>': repeated('only event types with this prefix'),
  '--team <id>': repeated('only this team'),
  '--user <id>': repeated('only this user'),
};
/** For commands that write rows. */
export const LOADED_AT = {
  '--loaded-at <time>': readBy(instant, 'value of _loaded_at in every row (default: start of the run)'),
};
/** For commands that can write to a URL. */
export const WORK = {
  '--work <folder>': 'with a URL: local folder for unfinished files (default: ./data/work/<URL>)',
};
