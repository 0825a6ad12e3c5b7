import { MillraceError } from '../core/errors.ts';
import { ErasedUsers } from '../erase/erased-users.ts';
import { note, type Io } from './io.ts';
import { configOf } from './options.ts';

/** The users whose data was not erased: history of the others is not to be fetched again. */
export function withoutErased(io: Io, config: string | undefined, users: readonly string[]): string[] {
  const erased = erasedUsers(io, config);
  const left = users.filter((user) => erased?.has({ team: null, user, clientUser: null }) !== true);
  const count = users.length - left.length;
  if (count > 0) note(io, `left out: ${count} erased ${count === 1 ? 'user' : 'users'}`);
  return left;
}

/** Null where there is no config to say where the list is. */
function erasedUsers(io: Io, config: string | undefined): ErasedUsers | null {
  try {
    return ErasedUsers.open(configOf({ config }, io).config.erasure.path);
  } catch (error) {
    if (config === undefined && error instanceof MillraceError && error.code === 'config_missing')
      return null;
    throw error;
  }
}
