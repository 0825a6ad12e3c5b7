// Erases the users named from a store and kills itself at one step; run by objects.test.ts.
// Arguments: root folder, step, at which occurrence of it, users…
import { join } from 'node:path';
import { erasing } from './objects-support.ts';
import { userId } from './support.ts';

const [root = '', step = '', occurrence = '1', ...users] = process.argv.slice(2);
let seen = 0;
const onStep = (now: string): void => {
  if (now !== step) return;
  seen += 1;
  if (seen === Number(occurrence)) process.kill(process.pid, 'SIGKILL');
};

const erasures = erasing(join(root, 'erasure'), join(root, 'store'), { onStep });
for (const user of users) await erasures.request({ by: 'user', id: userId(Number(user)), team: null }, true);
await erasures.run();
