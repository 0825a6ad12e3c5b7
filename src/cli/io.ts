import type { Readable, Writable } from 'node:stream';
import { MillraceError } from '../core/errors.ts';
import { visible, visibleLines } from '../lib/visible.ts';

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
