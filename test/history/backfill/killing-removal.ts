import fs, { type RmOptions } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';

// Preloaded into a command: removes one entry after another, and kills the process before the nth step. The first is the note that
// the run has ended.
let left = Number(process.env['KILL_BEFORE_REMOVAL']);

function step(): void {
  left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
}

function remove(path: string): void {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isDirectory()) {
    for (const name of fs.readdirSync(path).toSorted()) remove(join(path, name));
    step();
    fs.rmdirSync(path);
  } else {
    step();
    fs.unlinkSync(path);
  }
}

const { rename, rm } = fs.promises;
fs.promises.rename = async (from, to): Promise<void> => {
  if (
    String(to).endsWith('_backfill/state.json') &&
    fs.readFileSync(String(from), 'utf8').includes('"ended":true')
  )
    step();
  await rename(from, to);
};
fs.promises.rm = async (path, options?: RmOptions): Promise<void> => {
  // Only what a run keeps of itself: other files are removed before they are made, too.
  if (!/_backfill(\/[0-9a-f]{12})?$/.test(String(path))) return rm(path, options);
  remove(String(path));
};
syncBuiltinESMExports();
