import { hash, randomBytes } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ManifestWriter } from '../../archive/manifest-writer.ts';
import { CLAIMS_FOLDER } from '../../core/archive.ts';
import type { JournalEvent } from '../../core/event.ts';
import type { ClaimCheck } from '../../core/sink.ts';
import { ensureFolder, syncFolder } from '../../lib/durable.ts';
import { writeNew } from '../../lib/new-file.ts';
import { safeLevel } from './partition.ts';

/**
 * Writes one whole event to a file of its own: `claim-checks/{team}/{day}/{time}#{type}#{id}.json[.gz]`. It appears
 * complete or not at all, and the same event has the same path. The service's own pipelines have the user in the place of
 * the day; here the path stays in the manifest, and in what points at it, when the user is erased.
 * It is in the manifest before anything points at it.
 */
export async function keepEvent(
  root: string,
  event: JournalEvent,
  compress: boolean,
  manifest: ManifestWriter,
): Promise<ClaimCheck> {
  const time = new Date(event.receivedAt).toISOString().replaceAll(':', '');
  const what = safeLevel(`${event.type}#${event.id}`).replaceAll('%23', '#');
  const place = [CLAIMS_FOLDER, safeLevel(event.team), time.slice(0, 10)].join('/');
  const path = `${place}/${time}#${what}.json${compress ? '.gz' : ''}`;
  const file = join(root, path);
  const folder = await ensureFolder(root, place);
  const temporary = join(folder, `.${randomBytes(6).toString('hex')}.tmp`);
  const content = compress ? await promisify(gzip)(event.body) : event.body;
  await writeNew(temporary, content);
  await rename(temporary, file);
  await syncFolder(folder);
  const sha256 = hash('sha256', event.body, 'hex');
  await manifest.append({
    claim_check: event.id,
    file: path,
    event_type: event.type,
    bytes: content.length,
    sha256: hash('sha256', content, 'hex'),
    body_sha256: sha256,
  });
  return { path, sha256, bytes: event.body.length };
}
