import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const NAME = 'millrace-run-';
/** Bytes: many times what the folders of a run hold at a moment. */
const ROOM = 4 * 2 ** 30;

/**
 * Has the tests' folders in memory, where it has room and lets programs run: to sync what is removed a moment later took longer than the rest
 * of most tests. A TMPDIR that is set stays; with one the long runs of CI keep to the disk.
 */
export default function inMemory(): (() => void) | undefined {
  if (process.env['TMPDIR'] !== undefined || !existsSync(MEMORY)) return undefined;
  const { bavail, bsize } = statfsSync(MEMORY);
  if (bavail * bsize < ROOM) return undefined;
  removeLeft();
  const folder = mkdtempSync(join(MEMORY, `${NAME}${process.pid}-`));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  if (spawnSync(program).status !== 0) {
    remove();
    return undefined;
  }
  rmSync(program);
  // Commands that root runs act as another user.
  chmodSync(folder, 0o1777);
  process.env['TMPDIR'] = folder;
  process.once('exit', remove);
  return remove;
}

/** What runs that were killed have left: it is memory. */
function removeLeft(): void {
  for (const name of readdirSync(MEMORY).filter((entry) => entry.startsWith(NAME))) {
    const pid = name.slice(NAME.length).split('-')[0] ?? '';
    if (existsSync(join('/proc', pid))) continue;
    try {
      rmSync(join(MEMORY, name), { recursive: true, force: true });
    } catch {
      // It has left a file system mounted there.
    }
  }
}
