import { messageOf } from '../../core/errors.ts';
import type { LogHead } from '../../core/receipt.ts';
import { EMPTY_ROOT } from './hashing.ts';
import { LogReader } from './log-files.ts';
import { openCheckpoint, type NoteVerifier } from './note.ts';

/** How a log in a folder ended when it was last signed, and which log it is; null for one that has not begun. */
export interface SignedHead extends LogHead {
  readonly id: string | null;
}

/**
 * Reads the head of a log, beside its writer too.
 * @throws Error when its checkpoint is not signed by this key, or its files are not what was signed
 */
export async function signedHead(folder: string, verifier: NoteVerifier): Promise<SignedHead> {
  const reader = new LogReader(folder);
  const id = reader.id();
  const note = reader.checkpoint();
  const origin = verifier.name;
  if (note === null) return { id, origin, size: 0, root: EMPTY_ROOT.toString('base64') };
  const head = openCheckpoint(note, verifier);
  if (head === null) throw new Error(`${folder}: its checkpoint is not signed by the key of ${origin}`);
  const { size } = head;
  const root = size === 0 ? EMPTY_ROOT : await rootOf(reader, size, folder);
  if (!root.equals(head.root)) throw new Error(`${folder} is not the log that its checkpoint was signed for`);
  return { id, origin, size, root: root.toString('base64') };
}

async function rootOf(reader: LogReader, size: number, folder: string): Promise<Buffer> {
  try {
    return await reader.tree(size).root();
  } catch (error) {
    throw new Error(`${folder} is not whole: ${messageOf(error)}`, { cause: error });
  }
}
