import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { OWNER_ONLY } from './durable.ts';
import { isRecord } from './is-record.ts';

/** Writes a small file of JSON that says something to others and decides nothing. @throws the system's error */
export function writeAdvice(file: string, value: object): void {
  // Made anew, so that nothing that stands in its place is followed or waited for.
  rmSync(`${file}.tmp`, { force: true });
  try {
    writeFileSync(`${file}.tmp`, `${JSON.stringify(value)}\n`, { mode: OWNER_ONLY, flag: 'wx' });
    renameSync(`${file}.tmp`, file);
  } catch (error) {
    // A full disk takes its name, and none of its bytes.
    rmSync(`${file}.tmp`, { force: true });
    throw error;
  }
}

/** Its fields, of any type; null when there is none that can be read. */
export function readAdvice(file: string): Readonly<Record<string, unknown>> | null {
  try {
    if (!lstatSync(file).isFile()) return null;
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
