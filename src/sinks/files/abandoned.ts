import { dirname, join } from 'node:path';
import { isWriterFolder, OPEN_FOLDER, PART_EXTENSION, WRITER_LOCK } from '../../core/archive.ts';
import type { SinkContext } from '../../core/sink.ts';
import { unlessAborted } from '../../lib/abort.ts';
import { listNames } from '../../lib/durable.ts';
import { tryLock } from '../../lib/file-lock.ts';
import { parseOptions } from './config.ts';
import { FilesSink } from './sink.ts';

/** A folder in which dead writers may have left unfinished files: an archive's own, or the spool of a store. */
export interface AbandonedPlace {
  readonly folder: string;
  /** The archive of these files: a path, or a URL. */
  readonly archive: string;
}

/**
 * Finishes the files of dead writers. The files of a living writer are left alone.
 * @returns why a file stays unfinished; null when none does
 * @throws the system's error when the folder cannot be read
 */
export async function finishAbandoned(
  { folder, archive }: AbandonedPlace,
  context: SinkContext,
  signal: AbortSignal,
): Promise<string | null> {
  if (!(await hasAbandoned(folder))) return null;
  const spool = folder === archive ? {} : { spool: dirname(folder) };
  const sink = new FilesSink(parseOptions({ path: archive, ...spool }), context);
  const opening = sink.open().then(() => true);
  const isOpen = await unlessAborted(opening, signal, false);
  const flushed = isOpen ? await unlessAborted(sink.flush(), signal, null) : null;
  const closing = sink.close(signal);
  // A store that does not answer must not delay the shutdown.
  if (isOpen) await closing;
  else closing.catch(() => undefined);
  return flushed?.failed[0] ?? null;
}

async function hasAbandoned(root: string): Promise<boolean> {
  for (const writer of await listNames(join(root, OPEN_FOLDER))) {
    const folder = join(root, OPEN_FOLDER, writer);
    if (!isWriterFolder(writer)) continue;
    if (!(await listNames(folder, true)).some((name) => name.endsWith(PART_EXTENSION))) continue;
    const lock = tryLock(join(folder, WRITER_LOCK));
    lock?.release();
    if (lock !== null) return true;
  }
  return false;
}
