import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { MillraceError, messageOf } from '../core/errors.ts';
import { errorCode } from '../lib/durable.ts';
import { usageError } from './io.ts';

/**
 * Writes a new file; a file that cannot be written completely is removed.
 * @param named as the command line names it: `--out tables.yaml`
 * @throws MillraceError usage when the file exists, output_unwritable
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

/** Writes a generated file over an existing one. @throws MillraceError output_unwritable */
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
