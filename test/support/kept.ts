import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A folder that is filled once for all files of a run, by whoever asks for it first; outside of a run, anew each time, until the process ends.
 * @param fill gets an empty folder; two that come at once may both fill one
 */
export function kept(name: string, fill: (folder: string) => void): string {
  const all = process.env['MILLRACE_TEST_KEPT'] ?? tmpdir();
  const folder = join(all, name);
  if (existsSync(folder)) return folder;
  const own = mkdtempSync(`${folder}-`);
  fill(own);
  if (process.env['MILLRACE_TEST_KEPT'] === undefined) {
    process.once('exit', () => rmSync(own, { recursive: true, force: true }));
    return own;
  }
  try {
    renameSync(own, folder);
  } catch {
    // Another worker's was there first.
    rmSync(own, { recursive: true });
  }
  return folder;
}
