import { ErasedUsers } from '../erase/erased-users.ts';
import { note, type Io } from './io.ts';
import { configIfAny } from './options.ts';

/** The users whose data was not erased: history of the others is not to be fetched again. */
export function withoutErased(io: Io, config: string | undefined, users: readonly string[]): string[] {
  const loaded = configIfAny({ config }, io);
  // Without a config nothing says where the list is.
  const erased = loaded === null ? null : ErasedUsers.open(loaded.config.erasure.path);
  const left = users.filter((user) => erased?.has({ team: null, user, clientUser: null }) !== true);
  const count = users.length - left.length;
  if (count > 0) note(io, `left out: ${count} erased ${count === 1 ? 'user' : 'users'}`);
  return left;
}
