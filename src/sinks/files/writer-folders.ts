import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { OPEN_FOLDER, WRITER_LOCK } from '../../core/archive.ts';
import type { SinkLog } from '../../core/sink.ts';
import { ensureFolder } from '../../lib/durable.ts';
import { tryOwn, type FileLock } from '../../lib/file-lock.ts';

const WRITER = /^[0-9a-f]{12}$/;

/** A folder for unfinished files that nobody else writes to while the lock is held. */
export interface WriterFolder {
  readonly path: string;
  readonly lock: FileLock;
}

/**
 * Takes every writer's folder whose writer is gone, or a new one if there is none: at least one. A folder whose writer
 * lives is left alone, so several processes can write one archive. Folders are kept for the next start.
 * @param root the archive's folder, absolute
 */
export async function claimWriterFolders(root: string, log: SinkLog): Promise<WriterFolder[]> {
  const parent = await ensureFolder(root, OPEN_FOLDER);
  const claimed: WriterFolder[] = [];
  try {
    for (const entry of await readdir(parent, { withFileTypes: true })) {
      if (!WRITER.test(entry.name)) continue;
      if (!entry.isDirectory()) {
        log.warn({ path: join(parent, entry.name) }, 'not a folder; not followed');
        continue;
      }
      // Who made it may have been killed before its name was durable.
      const path = await ensureFolder(root, `${OPEN_FOLDER}/${entry.name}`);
      const lock = tryOwn(join(path, WRITER_LOCK));
      if (lock === null) log.info({ path }, 'another writer uses this archive');
      else claimed.push({ path, lock });
    }
    while (claimed.length === 0) {
      const name = randomBytes(6).toString('hex');
      const path = await ensureFolder(root, `${OPEN_FOLDER}/${name}`);
      const lock = tryOwn(join(path, WRITER_LOCK));
      if (lock !== null) claimed.push({ path, lock });
    }
  } catch (error) {
    for (const { lock } of claimed) lock.release();
    throw error;
  }
  return claimed;
}

/** @param name below the archive's folder for unfinished files */
export function isWriterFolder(name: string): boolean {
  return WRITER.test(name);
}

/** True for what belongs to the lock itself, in the top level of a writer's folder. */
export function isLockFile(name: string): boolean {
  return name === WRITER_LOCK || name.startsWith(`${WRITER_LOCK}-`);
}
