import { randomBytes } from 'node:crypto';

/** What lies in a log's folder. */
export const LOG_FOLDER = '_delta_log';

export function commitName(version: number): string {
  return `${padded(version)}.json`;
}

export function checkpointName(version: number): string {
  return `${padded(version)}.checkpoint.parquet`;
}

function padded(version: number): string {
  return String(version).padStart(20, '0');
}

const KEPT = /\.kept-[0-9a-f]+(?=\.parquet$)/;

/** A new name for what is left of a data file. It tells which file it was. */
export function rewriteName(key: string): string {
  return originOf(key).replace(/(\.parquet)?$/, `.kept-${randomBytes(6).toString('hex')}.parquet`);
}

/** What a data file was called when it was first written. */
export function originOf(key: string): string {
  return key.replace(KEPT, '');
}
