import { MillraceError } from '../../core/errors.ts';
import { ENTRY_BYTES } from '../../core/receipt.ts';
import { Frontier } from './frontier.ts';
import { EMPTY_ROOT } from './hashing.ts';
import type { LogSource } from './log-source.ts';
import { openCheckpoint, type NoteVerifier, type TreeHead } from './note.ts';
import { hashesIn } from './tiles.ts';

/** Entries read at a time: 256 tiles. */
const CHUNK = 65_536;

/**
 * Reads all of a log, in constant memory, and compares it with its signed checkpoint.
 * @param begin gets the head; returns what is called with each entry, and the tree up to it
 * @throws MillraceError receipts_unusable when it is not the log that its checkpoint was signed for
 */
export async function scanLog(
  log: LogSource,
  verifier: NoteVerifier,
  begin: (head: TreeHead) => (index: number, entry: Buffer, tree: Frontier) => void,
): Promise<TreeHead> {
  const note = await log.checkpoint();
  const unusable = (detail: string): MillraceError =>
    new MillraceError('receipts_unusable', `${log.name}: ${detail}`);
  // A log that has just begun has no checkpoint, and no entry.
  if (note === null && ((await log.entries(0, 1)).length > 0 || !(await log.exists())))
    throw unusable('has no checkpoint');
  const head =
    note === null ? { origin: verifier.name, size: 0, root: EMPTY_ROOT } : openCheckpoint(note, verifier);
  if (head === null) throw unusable(`its checkpoint is not signed by ${verifier.name}`);
  const take = begin(head);
  const tree = new Frontier();
  for (let at = 0; at < head.size; at += CHUNK) {
    const count = Math.min(CHUNK, head.size - at);
    const entries = await log.entries(at, count);
    if (entries.length !== count * ENTRY_BYTES) throw unusable(`has fewer than ${head.size} entries`);
    for (const [index, entry] of hashesIn(entries).entries()) {
      tree.push(entries, index * ENTRY_BYTES);
      take(at + index, entry, tree);
    }
  }
  if (!tree.root().equals(head.root)) throw unusable('is not the log that its checkpoint was signed for');
  return head;
}
