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
