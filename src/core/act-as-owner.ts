import { actAsOwnerOf as act } from '../lib/act-as-owner.ts';
import { messageOf, MillraceError } from './errors.ts';

/**
 * When root runs this process, it becomes the owner of a file or folder before it trusts the file or writes to the folder.
 * @throws MillraceError usage when it may not
 */
export function actAsOwnerOf(path: string): void {
  try {
    act(path);
  } catch (error) {
    throw new MillraceError(
      'usage',
      `run it as the user who owns ${path}, with sudo -u: ${messageOf(error)}`,
      { cause: error },
    );
  }
}
