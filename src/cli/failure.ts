import type { CommanderError } from 'commander';
import { CATALOGUE, EXIT, MillraceError, messageOf } from '../core/errors.ts';
import { visible, visibleLines } from '../lib/visible.ts';
import { ServiceError } from '../service/errors.ts';
import { hasColours, styled } from './colour.ts';
import type { Io } from './io.ts';
import { outsideCause } from './outside-cause.ts';

/** Whether a command line asks for JSON; what stands behind `--` is a name, whatever it looks like. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end === -1 ? args : args.slice(0, end)).includes('--json');
}

/** Says on stderr why a command has failed: in words, or with `--json` as its last line, which is one JSON document. */
export function writeFailure(io: Io, thrown: unknown, isJson: boolean): void {
  const isStopped = io.signal.aborted && thrown instanceof Error && thrown.name === 'AbortError';
  const error = isStopped
    ? new MillraceError('interrupted', 'run it again')
    : (outsideCause(thrown) ?? thrown);
  if (isJson) return void io.stderr.write(`${visible(JSON.stringify({ error: documentOf(error) }))}\n`);
  const name = styled('red', 'millrace:', hasColours(io.stderr, io.env));
  io.stderr.write(`${name} ${visibleLines(messageOf(error))}\n`);
  const isExpected = error instanceof MillraceError || error instanceof ServiceError;
  if (!isExpected && error instanceof Error) io.stderr.write(visibleLines(`${error.stack ?? ''}\n`));
}

/** Why stdout takes nothing more. What was written of the results is not all of them, whatever they said so far. */
export function lostOutput(error: NodeJS.ErrnoException): MillraceError {
  const reason = error.code === 'EPIPE' ? 'what read it ended before it had all' : messageOf(error);
  return new MillraceError('output_unwritable', `standard output: ${reason}`, { cause: error });
}

/** The same, as JSON, for a command line that cannot be read. */
export function writeUsageFailure(io: Io, { code, message }: CommanderError): void {
  const detail = code === 'commander.help' ? 'a command is missing; --help names them' : message;
  writeFailure(io, new MillraceError('usage', detail.replace(/^error: /, '')), true);
}

function documentOf(error: unknown): object {
  if (error instanceof MillraceError) {
    const { code, detail, exit } = error;
    const { title, retryable } = CATALOGUE[code];
    return { code, title, detail, exit, retryable };
  }
  const detail = messageOf(error);
  const exit = EXIT.failed;
  if (error instanceof ServiceError) {
    const { code, retryable } = error;
    return { code: `service_${code}`, title: 'The service refused or failed', detail, exit, retryable };
  }
  const { title, retryable } = CATALOGUE.internal;
  return { code: 'internal', title, detail, exit, retryable };
}
