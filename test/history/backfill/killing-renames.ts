import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

// Preloaded into a backfill: kills the process before the nth file that gets its name once all is fetched.
let left = Number(process.env['KILL_BEFORE_RENAME']);
let isFetched = false;

const { rename } = fs.promises;
fs.promises.rename = async (from, to): Promise<void> => {
  isFetched ||= String(to).endsWith('kept.json');
  if (isFetched) left -= 1;
  if (isFetched && left === 0) process.kill(process.pid, 'SIGKILL');
  await rename(from, to);
};
syncBuiltinESMExports();
