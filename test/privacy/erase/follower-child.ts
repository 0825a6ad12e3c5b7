import { ErasedUsers } from '../../../src/privacy/erase/erased-users.ts';

// Asks again and again whether a user is erased whom another process erases: its answers are its output.
const users = ErasedUsers.open(process.argv[2] ?? '');
users.follow();
setInterval(() => {
  const isErased = users.has({ team: null, user: 'gone', clientUser: null });
  process.stdout.write(isErased ? 'gone\n' : 'here\n');
}, 10);
