import type { Readable, Writable } from 'node:stream';
import { MillraceError } from '../core/errors.ts';
import { visible, visibleLines } from '../lib/visible.ts';
import { styleText } from 'node:util';
import { inColumns } from '../lib/columns.ts';

/** What a command may touch of the process. `main.ts` hands it in, so that commands can run inside tests. */
export interface Io {
  /** Results, and nothing else. */
  readonly stdout: Writable & { isTTY?: boolean; columns?: number };
  /** Progress, logs and errors. */
  readonly stderr: Writable & { isTTY?: boolean; columns?: number };
  readonly stdin: Readable & { isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Has `env` hold what `.env` says now, and returns what takes that back; left out where the process is not the command's own.
   * Rejects when the file cannot be read any more, and `env` is as before.
   */
  readonly readEnvAgain?: () => Promise<() => void>;
  /** Aborts on SIGINT or SIGTERM; a command then stops in an orderly way. */
  readonly signal: AbortSignal;
  /** Calls back at each SIGHUP. A command that does not ask for it is ended by one, as is usual. */
  onHangUp(listener: () => void): void;
  /**
   * Calls back for an error that nobody caught and that no guest answers for. A command that does not ask for it is ended by
   * one.
   * @param guest the file of the user's own code that threw it; null for our own
   */
  onUncaught(listener: (error: unknown, guest: string | null) => void): void;
  /**
   * What becomes of the command when stdout takes nothing more. A reader that has closed its pipe ends one that only shows
   * something (`end`), with the exit code set so far; the others run to their end in silence. With anything else a command has
   * failed, but for a receiver (`stay`).
   */
  whenOutputIsLost(then: 'end' | 'stay'): void;
  /** The code the process ends with once the command has returned; see EXIT. */
  setExit(code: number): void;
}

/** Writes text to stdout, control characters as escapes. */
export function print(io: Io, line: string): void {
  io.stdout.write(`${visibleLines(line)}\n`);
}

/** Writes one line of progress or advice to stderr, whatever is in it. */
export function note(io: Io, line: string): void {
  io.stderr.write(`${visible(line)}\n`);
}

/** What a command throws at a command line that it cannot work by. */
export function usageError(detail: string, options?: ErrorOptions): MillraceError {
  return new MillraceError('usage', detail, options);
}

export type Style = Parameters<typeof styleText>[0];

/**
 * Whether a stream is written in colours: a terminal that can show them, unless NO_COLOR says not to; with FORCE_COLOR
 * always, whatever NO_COLOR says, as Node itself has it.
 */
export function hasColours(stream: Writable & { isTTY?: boolean }, env: Io['env']): boolean {
  const forced = env['FORCE_COLOR'] ?? '';
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return stream.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

export function styled(style: Style, text: string, isColoured: boolean): string {
  return isColoured ? styleText(style, text, { validateStream: false }) : text;
}

/** What a command found: with --json as one line of JSON, otherwise in words, a line each. */
export function printResult(
  io: Io,
  { json }: { readonly json?: boolean | undefined },
  found: object,
  ...lines: readonly string[]
): void {
  for (const line of json === true ? [JSON.stringify(found)] : lines) print(io, line);
}

export function printList<T>(
  io: Io,
  { json }: { readonly json?: boolean | undefined },
  found: readonly T[],
  header: readonly string[],
  row: (one: T) => readonly string[],
): void {
  if (json === true) for (const one of found) print(io, JSON.stringify(one));
  else if (found.length === 0) note(io, 'none');
  else printTable(io, header, found.map(row));
}

/** A table on stdout; on a terminal its heading stands out. */
export function printTable(io: Io, header: readonly string[], rows: readonly (readonly string[])[]): void {
  const [heading = '', ...lines] = inColumns([header, ...rows]).split('\n');
  io.stdout.write([styled('bold', heading, hasColours(io.stdout, io.env)), ...lines, ''].join('\n'));
}
