import { fileLines } from '../archive/file-lines.ts';
import type { Bytes } from '../archive/place.ts';
import { namesUser } from './file-kinds.ts';

/** Of whom a file is that nobody has to wait for: it can only be named on the receipt. */
export const NOBODY: readonly string[] = [];
export const OWNERLESS = 'it has rows that do not say whose they are; recreate it without the user';

/** Whether some row of a table does not say whose it is. A file that is damaged has been refused before. */
export async function hasOwnerless(place: Bytes, file: string): Promise<boolean> {
  for await (const lines of fileLines(place, file))
    if (lines.some(({ bytes }) => bytes === null || !namesUser(bytes))) return true;
  return false;
}
