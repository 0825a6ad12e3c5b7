import { hash, randomBytes } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { JournalEvent } from '../../core/event.ts';
import type { ClaimCheck } from '../../core/sink.ts';
import { CREATE_NEW, ensureFolder, openPlain, syncFolder, writeAll } from '../../lib/durable.ts';
import { safeLevel } from './partition.ts';

/** Folder of kept events inside an archive. */
const FOLDER = 'claim-checks';

/**
 * Writes one whole event to a file of its own: `claim-checks/{team}/{user}/{time}#{type}#{id}.json[.gz]`, the layout the
 * service's own pipelines use for large events. It appears complete or not at all, and the same event has the same path.
 */
export async function keepEvent(root: string, event: JournalEvent, compress: boolean): Promise<ClaimCheck> {
  const time = new Date(event.receivedAt).toISOString().replaceAll(':', '');
  const what = safeLevel(`${event.type}#${event.id}`).replaceAll('%23', '#');
  const place = [FOLDER, safeLevel(event.team), safeLevel(event.user)].join('/');
  const path = `${place}/${time}#${what}.json${compress ? '.gz' : ''}`;
  const file = join(root, path);
  const folder = await ensureFolder(root, place);
  const temporary = join(folder, `.${randomBytes(6).toString('hex')}.tmp`);
  const handle = await openPlain(temporary, CREATE_NEW);
  try {
    await writeAll(handle, compress ? await promisify(gzip)(event.body) : event.body, 0);
    await handle.sync();
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  await syncFolder(folder);
  return { path, sha256: hash('sha256', event.body, 'hex'), bytes: event.body.length };
}
