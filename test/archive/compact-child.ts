// Compacts and kills itself at one step; run by compact.test.ts.
// Arguments: root folder, kind of place, step, at which occurrence of it.
import { killAt } from '../support/killed.ts';
import { compacted, type Kind } from './compact-support.ts';

const [root = '', kind = 'folder', step = '', occurrence = '1'] = process.argv.slice(2);
await compacted(root, kind as Kind, { onStep: killAt(step, occurrence) });
