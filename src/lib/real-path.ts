import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';

/** The path that leads there without links; of what is not there, its absolute one. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
