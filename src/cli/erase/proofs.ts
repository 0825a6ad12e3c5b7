import { messageOf } from '../../core/errors.ts';
import type { LogHead } from '../../core/receipt.ts';
import type { LogSource } from '../../privacy/receipts/log-source.ts';
import type { NoteVerifier } from '../../privacy/receipts/note.ts';
import { parseProof, verifyProof, type Proof } from '../../privacy/receipts/proof-text.ts';
import { ProvingLog } from '../../privacy/receipts/proving-log.ts';
import { scanLog } from '../../privacy/receipts/scan.ts';
import { note, usageError, type Io } from '../io.ts';
import { keyWarning } from '../log-options.ts';

/** Results of a verification, a line each. */
export interface Findings {
  readonly differences: string[];
  /** Entries that are not in this log; they may be in another. */
  readonly unproven: string[];
}

interface LogToAsk {
  readonly log: LogSource | null;
  /** Key of the log; undefined trusts the key that the log names. */
  readonly key: NoteVerifier | undefined;
  /** Head of the log in the receipt; null in a receipt without one. */
  readonly head: LogHead | null;
  readonly io: Io;
}

/**
 * Verifies that the entries are in the log.
 * @param known proofs that the file of the receipt has, by entry
 * @returns the valid proofs by entry; null when there is nothing to verify, or neither a log nor a key
 */
export async function proofsOf(
  entries: readonly string[],
  known: ReadonlyMap<string, string>,
  { log, key, head, io }: LogToAsk,
  { differences, unproven }: Findings,
): Promise<Map<string, string> | null> {
  const hasNothing = entries.length === 0 && (log === null || head === null);
  const hasNoKey = log === null && known.size === 0 && key === undefined;
  if (hasNothing || hasNoKey) return null;
  const verifier = key ?? (await log?.key()) ?? null;
  if (verifier === null) throw usageError('name the key of the log: --key, or --config with receipts.path');
  if (key === undefined) note(io, keyWarning(log));
  const asked = log === null ? null : await askLog(log, verifier, entries, head);
  const isOther = asked !== null && head?.origin === verifier.name && !asked.hasHead;
  if (isOther)
    differences.push(`the log was made again: it had ${head.size} other entries at the time of the receipt`);
  const proven = new Map<string, string>();
  for (const entry of entries) {
    const text = (asked === null ? known : asked.proofs).get(entry);
    // The receipt may name entries of an earlier log.
    if (asked !== null && text === undefined && !isOther) {
      unproven.push(`entry ${entry} ${elsewhere(head, verifier)}`);
      continue;
    }
    const proof = proofIn(text ?? null, entry, verifier);
    if (typeof proof === 'string') {
      differences.push(`entry ${entry} is not proven to be in the log ${verifier.name}: ${proof}`);
      continue;
    }
    const { index } = proof;
    if (head?.origin === verifier.name && index >= head.size)
      differences.push(
        `entry ${entry} is number ${index} of the log, which had ${head.size} at the time of the receipt`,
      );
    proven.set(entry, proof.text);
  }
  return proven;
}

function elsewhere(head: LogHead | null, { name }: NoteVerifier): string {
  const where = head === null || head.origin === name ? 'an earlier log' : `the log ${head.origin}`;
  return `is not in the log ${name}: it may be of ${where}, which was not asked: give --log and --key`;
}

async function askLog(
  log: LogSource,
  verifier: NoteVerifier,
  entries: readonly string[],
  head: LogHead | null,
): Promise<{ readonly proofs: ReadonlyMap<string, string | null>; readonly hasHead: boolean }> {
  const wanted = new Set(entries);
  const places = new Map<string, number>();
  let root: string | null = null;
  await scanLog(log, verifier, () => (index, entry, tree) => {
    const text = entry.toString('base64');
    if (wanted.has(text) && !places.has(text)) places.set(text, index);
    if (index + 1 === head?.size) root = tree.root().toString('base64');
  });
  const proofs = new Map<string, string | null>();
  const proving = new ProvingLog(log, verifier);
  for (const [entry, index] of places)
    proofs.set(entry, await proving.proof(index, Buffer.from(entry, 'base64')));
  return { proofs, hasHead: head === null || head.size === 0 || root === head.root };
}

/** The verified proof of an entry, or why it is invalid. */
function proofIn(
  text: string | null,
  entry: string,
  verifier: NoteVerifier,
): (Proof & { readonly text: string }) | string {
  if (text === null) return 'there is no proof of it';
  try {
    const proof = parseProof(text);
    const verdict = verifyProof(Buffer.from(entry, 'base64'), proof, verifier);
    return verdict.ok ? { ...proof, text } : verdict.reason;
  } catch (error) {
    return messageOf(error);
  }
}
