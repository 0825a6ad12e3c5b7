import { MillraceError } from '../../core/errors.ts';
import type { CheckpointStore } from '../../core/source.ts';
import type { ErasedUsers } from './erased-users.ts';

/** Key under which the journal, in another folder, notes the number of lines of the list of erased users. */
const LENGTH = 'erased_lines';

export function noteLength({ lines }: ErasedUsers, checkpoints: CheckpointStore): Promise<void> {
  return checkpoints.save(LENGTH, String(lines));
}

/** @throws MillraceError erasure_stale when the list lacks lines that it had: their users would not be dropped any more */
export async function checkLength(
  users: ErasedUsers,
  checkpoints: CheckpointStore,
  folder: string,
): Promise<void> {
  const noted = Number((await checkpoints.load(LENGTH)) ?? 0);
  if (users.lines >= noted) return noteLength(users, checkpoints);
  throw new MillraceError(
    'erasure_stale',
    `erasure.path ${folder}: the list of erased users has ${users.lines} lines, and the journal says that it had ${noted}: ` +
      'it is an older copy, or not mounted. Restore the newest copy. If there is none, erase again each user who was erased ' +
      'since (millrace erase USER --now): the receiver starts after the first',
  );
}
