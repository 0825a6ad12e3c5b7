// Compacts and kills itself at one step; run by compact.test.ts.
// Arguments: root folder, kind of place, step, at which occurrence of it.
import { compacted, type Kind } from './compact-support.ts';

const [root = '', kind = 'folder', step = '', occurrence = '1'] = process.argv.slice(2);
let seen = 0;
await compacted(root, kind as Kind, {
  onStep: (now) => {
    if (now !== step) return;
    seen += 1;
    if (seen === Number(occurrence)) process.kill(process.pid, 'SIGKILL');
  },
});
