/**
 * `npm run pictures [-- SECONDS]`: makes the pictures of docs/ again, from the program as it is: the console in Chromium, light and
 * dark, after events for SECONDS (300, which is what its chart shows), and a session in a terminal. All data is made up.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { consolePictures } from './console.ts';
import { terminalPicture } from './terminal.ts';

const ROOT = join(import.meta.dirname, '../..');
const seconds = Number(process.argv[2] ?? 300);
if (!Number.isInteger(seconds) || seconds < 5) throw new Error('SECONDS must be a whole number from 5');

const folder = mkdtempSync(join(tmpdir(), 'millrace-pictures-'));
try {
  const places = { main: join(ROOT, 'src/main.ts'), folder, docs: join(ROOT, 'docs') };
  await terminalPicture(places);
  await consolePictures(places, seconds);
} finally {
  rmSync(folder, { recursive: true });
}
