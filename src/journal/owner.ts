import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Who holds the journal; advice for people and commands, never the lock itself. */
export interface Owner {
  readonly pid: number;
  /** Base URL of its admin API, if it has one. */
  readonly admin: string | null;
}

const FILE = 'owner.json';

export function writeOwner(folder: string, owner: Owner): void {
  const file = join(folder, FILE);
  // Made anew, so that nothing that stands in its place is followed or waited for.
  rmSync(`${file}.tmp`, { force: true });
  writeFileSync(`${file}.tmp`, `${JSON.stringify(owner)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(`${file}.tmp`, file);
}

/** The last owner that wrote its name; it may have died since. */
export function readOwner(folder: string): Owner | null {
  const file = join(folder, FILE);
  try {
    if (!lstatSync(file).isFile()) return null;
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof value !== 'object' || value === null || !('pid' in value)) return null;
    const admin = 'admin' in value && typeof value.admin === 'string' ? value.admin : null;
    return { pid: Number(value.pid), admin };
  } catch {
    return null;
  }
}

export function clearOwner(folder: string): void {
  rmSync(join(folder, FILE), { force: true });
}
