import { createHash } from 'node:crypto';
import type { IdSearch } from '../core/id-search.ts';
import { nullIfMissing, readWhole } from '../core/objects.ts';
import type { DeltaLog } from '../delta/log.ts';

/** Whether what the log says of files (the bounds that other programs write there) names a subject. */
export async function isInLog(log: DeltaLog, search: IdSearch, signal: AbortSignal): Promise<boolean> {
  for await (const { key } of log.store.list(log.key(''), signal)) {
    if (!key.endsWith('.json')) continue;
    const commit = await readWhole(log.store, key, signal).catch(nullIfMissing);
    if (commit !== null && search.finds(commit)) return true;
  }
  return false;
}

/** SHA-256 of a data file, lower-case hex. @throws StorageError */
export async function hashOf(log: DeltaLog, key: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of log.store.get(log.prefix + key, { signal })) hash.update(chunk);
  return hash.digest('hex');
}
