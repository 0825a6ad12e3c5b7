import { systemClock } from '../../src/core/clock.ts';
import { messageOf } from '../../src/core/errors.ts';
import { writeOwner } from '../../src/journal/owner.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { makeEvent } from '../support/events.ts';
import { roomyJournal } from '../support/inline-journal.ts';

// A process that opens the journal, appends so many events, each in a commit, and keeps the journal open.
const [path = '', count = '0'] = process.argv.slice(2);
try {
  const journal = await SqliteJournal.open(roomyJournal(path, systemClock, { dedupWindow: 1e12 }));
  writeOwner(path, { pid: process.pid, admin: null, token: null });
  for (let i = 0; i < Number(count); i += 1) await journal.accept(makeEvent());
  process.stdout.write('ready\n');
  setInterval(() => undefined, 60_000);
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
}
