// Erases the users named from a store and kills itself at one step; run by objects.test.ts.
// Arguments: root folder, step, at which occurrence of it, users…
import { join } from 'node:path';
import { killAt } from '../../support/killed.ts';
import { erasing } from './objects-support.ts';
import { eraseNow } from './support.ts';

const [root = '', step = '', occurrence = '1', ...users] = process.argv.slice(2);
const erasures = erasing(join(root, 'erasure'), join(root, 'store'), {
  onStep: killAt(step, occurrence),
});
await eraseNow(erasures, ...users.map(Number));
