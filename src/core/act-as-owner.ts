import { actAsOwnerOf as act } from '../lib/act-as-owner.ts';
import { messageOf, MillraceError } from './errors.ts';

/**
 * Before a file is read that this process obeys, or runs, or a folder written to: root becomes the user who owns it.
 * @throws MillraceError usage where it may not
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
