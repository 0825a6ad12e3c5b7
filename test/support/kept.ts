import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A folder that the first caller fills for all files of a run. Outside of a run each process fills its own.
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
