import { rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { CREATE_NEW, openPlain, syncFolder, writeAll } from '../lib/durable.ts';

/** Writes a file that only its owner may read, whole or not at all; durable once it resolves. */
export async function writeWhole(folder: string, name: string, text: string): Promise<void> {
  const temporary = join(folder, `.${name}.tmp`);
  await unlink(temporary).catch(() => undefined);
  const handle = await openPlain(temporary, CREATE_NEW, 0o600);
  try {
    await writeAll(handle, Buffer.from(text), 0);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, join(folder, name));
  await syncFolder(folder);
}
