import fs, { type RmOptions } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';

// Preloaded into a command: removes one entry after another, and kills the process before the nth.
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

const { rm } = fs.promises;
fs.promises.rm = async (path, options?: RmOptions): Promise<void> => {
  // Only what a run keeps of itself: other files are removed before they are made, too.
  if (!/_backfill(\/state\.json)?$/.test(String(path))) return rm(path, options);
  remove(String(path));
};
syncBuiltinESMExports();
