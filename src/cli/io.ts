import type { Readable, Writable } from 'node:stream';
import { MillraceError } from '../core/errors.ts';
import { visible, visibleLines } from '../lib/visible.ts';
import { styleText } from 'node:util';
import { inColumns } from '../lib/columns.ts';

/** The parts of the process that a command uses. `main.ts` provides them, and so do tests. */
export interface Io {
  /** Results only. */
  readonly stdout: Writable & { isTTY?: boolean; columns?: number };
  /** Progress, logs and errors. */
  readonly stderr: Writable & { isTTY?: boolean; columns?: number };
  readonly stdin: Readable & { isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Reads `.env` into `env` again, and returns a function that undoes it. Absent in tests, which share the process.
   * Rejects and leaves `env` unchanged when the file cannot be read.
   */
  readonly readEnvAgain?: () => Promise<() => void>;
  /** Warnings for lines of `.env` that do not count, because `env` has another value. Absent in tests. */
  readonly envWarnings?: () => readonly string[];
  /** Aborts on SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** Listens for SIGHUP, which otherwise ends the process. */
  onHangUp(listener: () => void): void;
  /**
   * Listens for uncaught errors, which otherwise end the process.
   * @param guest file of the user's module that threw; null for our own code
   */
  onUncaught(listener: (error: unknown, guest: string | null) => void): void;
  /**
   * Says what a failing stdout does. By default a closed pipe is ignored, and any other error fails the command.
   * `end`: a closed pipe ends the command with the exit code set so far. `stay`: errors are ignored, for a receiver.
   */
  whenOutputIsLost(then: 'end' | 'stay'): void;
  /** Sets the exit code of the process; see EXIT. */
  setExit(code: number): void;
}

/** Writes text to stdout, control characters as escapes. */
export function print(io: Io, text: string): void {
  io.stdout.write(`${visibleLines(text)}\n`);
}

/** Writes one line to stdout; line breaks in it become escapes too. */
export function printLine(io: Io, line: string): void {
  print(io, visible(line));
}

/** Writes one line of progress or advice to stderr. */
export function note(io: Io, line: string): void {
  io.stderr.write(`${visible(line)}\n`);
}

/** The error for a command line that cannot be used. */
export function usageError(detail: string, options?: ErrorOptions): MillraceError {
  return new MillraceError('usage', detail, options);
}

/** Closes a resource at the end of its `await using` block. */
export function closing<T extends { close(): Promise<void> }>(resource: T): T & AsyncDisposable {
  return Object.assign(resource, { [Symbol.asyncDispose]: () => resource.close() });
}

/** `1 file`, `2 files` */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export type Style = Parameters<typeof styleText>[0];

/** True for a terminal with colours, unless NO_COLOR is set. FORCE_COLOR comes before both, as in Node. */
export function hasColours(stream: Writable & { isTTY?: boolean }, env: Io['env']): boolean {
  const forced = env['FORCE_COLOR'] ?? '';
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return stream.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

export function styled(style: Style, text: string, isColoured: boolean): string {
  return isColoured ? styleText(style, text, { validateStream: false }) : text;
}

interface JsonFlag {
  readonly json?: boolean | undefined;
}

/** Prints a result: with --json one line of JSON, otherwise the lines. */
export function printResult(io: Io, { json }: JsonFlag, found: object, ...lines: readonly string[]): void {
  for (const line of json === true ? [JSON.stringify(found)] : lines) print(io, line);
}

/** Prints a report: with --json an indented JSON document, otherwise the text. */
export function printReport(io: Io, { json }: JsonFlag, report: object, text: () => string): void {
  print(io, json === true ? JSON.stringify(report, null, 2) : text());
}

/** Prints a list: with --json a line for each, otherwise a table. */
export function printList<T>(
  io: Io,
  { json }: JsonFlag,
  found: readonly T[],
  header: readonly string[],
  row: (one: T) => readonly string[],
): void {
  if (json === true) for (const one of found) print(io, JSON.stringify(one));
  else if (found.length === 0) note(io, 'none');
  else printTable(io, header, found.map(row));
}

/** Prints a table; on a terminal its heading is bold. */
export function printTable(io: Io, header: readonly string[], rows: readonly (readonly string[])[]): void {
  const [heading = '', ...lines] = inColumns([header, ...rows]).split('\n');
  io.stdout.write([styled('bold', heading, hasColours(io.stdout, io.env)), ...lines, ''].join('\n'));
}
