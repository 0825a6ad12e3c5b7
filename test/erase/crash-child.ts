// Erases the users named and kills itself at one step; run by crash.long.test.ts.
// Arguments: root folder, step, at which occurrence of it, users…
import { join } from 'node:path';
import { systemClock } from '../../src/core/clock.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { erasuresOver, folderStore, JOURNAL_LIMITS, userId } from './support.ts';

const [root = '', step = '', occurrence = '1', ...users] = process.argv.slice(2);
let seen = 0;
const onStep = (now: string): void => {
  if (now !== step) return;
  seen += 1;
  if (seen === Number(occurrence)) process.kill(process.pid, 'SIGKILL');
};

const journal = await SqliteJournal.open({
  ...JOURNAL_LIMITS,
  path: join(root, 'journal'),
  create: false,
  clock: systemClock,
  onFailure: (error) => {
    throw error;
  },
});
const stores = [journal, folderStore(join(root, 'archive')), folderStore(join(root, 'tables'))];
const { erasures } = erasuresOver(join(root, 'erasure'), stores, {
  onStep,
  forget: (events) => journal.forget(events),
  forgotten: (running) => journal.forgotten(running),
  closed: (subjects) => journal.erased(subjects),
});
for (const user of users) await erasures.request({ by: 'user', id: userId(Number(user)), team: null }, true);
await erasures.run();
await journal.close();
