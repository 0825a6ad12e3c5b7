import { type ObjectBody, StorageError } from '../../core/storage.ts';
import { readPlain } from '../../lib/durable.ts';
import { fillNew, HashedFile, NewFile } from '../../lib/new-file.ts';

/** A microsecond, in seconds: what times of files can be told apart by. */
const TICK = 1e-6;
let latest = 0;

/** Writes a body under a temporary name; it is on disk once this resolves. @throws StorageError when a file was changed */
export async function writeTemporary(path: string, body: ObjectBody, signal?: AbortSignal): Promise<void> {
  if ('bytes' in body) {
    await fillNew(NewFile.create(path), async (file) => {
      await file.write(body.bytes);
      await stamp(file);
    });
    return;
  }
  await fillNew(HashedFile.create(path), async (file) => {
    for await (const chunk of readPlain(body.file)) {
      signal?.throwIfAborted();
      await file.write(chunk);
    }
    const { bytes, sha256 } = file.facts();
    if (bytes !== body.size || sha256 !== body.sha256)
      throw new StorageError('invalid', `${body.file} was changed before it was copied`);
    await stamp(file);
  });
}

/** The system's own times stand still for milliseconds, in which a file can be replaced twice. */
async function stamp(file: NewFile): Promise<void> {
  const now = (performance.timeOrigin + performance.now()) / 1000;
  latest = Math.max(now, latest + TICK);
  await file.handle.utimes(latest, latest);
}
