import { SILENT } from '../../../src/core/sink.ts';
import { ErasedUsers } from '../../../src/privacy/erase/erased-users.ts';
import { Follower } from '../../../src/privacy/erase/followers.ts';

// Follows a list, and never settles what it has in flight.
const folder = process.argv[2] ?? '';
const users = ErasedUsers.open(folder);
Follower.start({
  folder,
  users,
  settle: () => new Promise(() => undefined),
  log: SILENT,
});
process.stdout.write('following\n');
setInterval(() => undefined, 1000);
