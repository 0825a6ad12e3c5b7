import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { OWNER_ONLY } from './durable.ts';
import { membersIn } from './parsed.ts';

/** Writes a small JSON file for information only: no lock and no state. @throws the system's error */
export function writeAdvice(file: string, value: object): void {
  // A new file: a link or FIFO of that name is neither followed nor waited for.
  rmSync(`${file}.tmp`, { force: true });
  try {
    writeFileSync(`${file}.tmp`, `${JSON.stringify(value)}\n`, { mode: OWNER_ONLY, flag: 'wx' });
    renameSync(`${file}.tmp`, file);
  } catch (error) {
    // A full disk may have room for the name only.
    rmSync(`${file}.tmp`, { force: true });
    throw error;
  }
}

/** The fields of the file, of any type; none when it cannot be read. */
export function readAdvice(file: string): Readonly<Record<string, unknown>> {
  try {
    return lstatSync(file).isFile() ? membersIn(readFileSync(file, 'utf8')) : {};
  } catch {
    return {};
  }
}
