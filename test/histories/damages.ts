import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { segmentsOf } from '../support/journal-files.ts';
import { seededRandom } from '../support/random.ts';

const DATABASE = ['journal.db', 'journal.db-wal'];

/** What becomes of files of a journal, and which bit. */
export const DAMAGES = {
  'a bit of the database': (folder, bit) => flip(join(folder, 'journal.db'), bit),
  'the database is emptied': (folder) =>
    DATABASE.forEach((name) => existsSync(join(folder, name)) && truncateSync(join(folder, name))),
  'the database is removed': (folder) =>
    DATABASE.forEach((name) => rmSync(join(folder, name), { force: true })),
  'a bit of a segment': (folder, bit) => segmentsOf(folder).forEach((path) => flip(path, bit)),
  'the first segment is removed': (folder) =>
    segmentsOf(folder)
      .slice(0, 1)
      .forEach((path) => rmSync(path)),
  'all segments are removed': (folder) => segmentsOf(folder).forEach((path) => rmSync(path)),
} as const satisfies Record<string, (folder: string, bit: number) => void>;

/** @param seed decides which bit */
function flip(path: string, seed: number): void {
  const bytes = readFileSync(path);
  if (bytes.length === 0) return;
  const at = Math.floor(seededRandom(seed)() * bytes.length);
  bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (seed % 8)), at);
  writeFileSync(path, bytes);
}
