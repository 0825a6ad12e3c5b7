import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { OWNER_ONLY, readIfThere } from '../lib/durable.ts';
import { writeOnce } from '../lib/new-file.ts';

const FILE = 'writer';

/**
 * What the chains are called that erasures of this installation continue in stores: the same each time, and another than
 * that of any receiver.
 * @param folder the erasure folder
 */
export async function erasingWriter(folder: string): Promise<string> {
  const path = join(folder, FILE);
  if (readIfThere(path) === null)
    await writeOnce(path, Buffer.from(`${randomBytes(6).toString('hex')}\n`), OWNER_ONLY);
  const name = readIfThere(path)?.trim() ?? '';
  if (/^[0-9a-f]{12}$/.test(name)) return name;
  throw new Error(`${path} is not 12 hex digits; remove it, and another is made`);
}
