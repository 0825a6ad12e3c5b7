// Erases the users named and kills itself at one step; run by crash.long.test.ts.
// Arguments: root folder, step, at which occurrence of it, users…
import { join } from 'node:path';
import { killAt } from '../../support/killed.ts';
import { eraseNow, erasuresOver, folderStore, openJournal } from './support.ts';

const [root = '', step = '', occurrence = '1', ...users] = process.argv.slice(2);
const journal = await openJournal(join(root, 'journal'), { create: false });
const stores = [journal, folderStore(join(root, 'archive')), folderStore(join(root, 'tables'))];
const { erasures } = erasuresOver(join(root, 'erasure'), stores, {
  onStep: killAt(step, occurrence),
  forget: (events) => journal.forget(events),
  forgotten: (running) => journal.forgotten(running),
  closed: (subjects) => journal.erased(subjects),
});
await eraseNow(erasures, ...users.map(Number));
await journal.close();
