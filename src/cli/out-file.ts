import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { MillraceError, messageOf } from '../core/errors.ts';
import { errorCode } from '../lib/durable.ts';
import { usageError } from './io.ts';

/**
 * Writes what a command was asked to write to a file of its own, never over one that may have been edited. Of one that cannot be
 * written to its end nothing is left.
 * @param named as the command line names it: `--out tables.yaml`
 * @throws MillraceError usage when it is there already, output_unwritable
 */
export function writeNew(named: string, file: string, text: string): void {
  let fd: number;
  try {
    fd = openSync(file, 'wx');
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw unwritable(named, error);
    throw usageError(`${named}: is there already; name another file`, { cause: error });
  }
  try {
    writeFileSync(fd, text);
  } catch (error) {
    rmSync(file, { force: true });
    throw unwritable(named, error);
  } finally {
    closeSync(fd);
  }
}

/** The same over what is there: made anew whenever it is asked for. @throws MillraceError output_unwritable */
export function writeOver(named: string, file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw unwritable(named, error);
  }
}

function unwritable(named: string, error: unknown): MillraceError {
  return new MillraceError('output_unwritable', `${named}: ${messageOf(error)}`, { cause: error });
}
