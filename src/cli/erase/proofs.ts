import { messageOf } from '../../core/errors.ts';
import type { LogHead } from '../../core/receipt.ts';
import type { LogSource } from '../../privacy/receipts/log-source.ts';
import type { NoteVerifier } from '../../privacy/receipts/note.ts';
import { parseProof, verifyProof, type Proof } from '../../privacy/receipts/proof-text.ts';
import { ProvingLog } from '../../privacy/receipts/proving-log.ts';
import { scanLog } from '../../privacy/receipts/scan.ts';
import { note, usageError, type Io } from '../io.ts';

/** What is said of entries, a line each. */
export interface Findings {
  readonly differences: string[];
  /** Not known, and nothing is wrong: it may be in another log than was asked. */
  readonly unproven: string[];
}

/** @returns a proof for each entry that has a sound one; null where neither a log nor its key was given, or the receipt says nothing of a log */
export async function proofsOf(
  entries: readonly string[],
  known: ReadonlyMap<string, string>,
  {
    log,
    key,
    io,
    head,
  }: {
    readonly log: LogSource | null;
    readonly key: NoteVerifier | undefined;
    readonly io: Io;
    readonly head: LogHead | null;
  },
  { differences, unproven }: Findings,
): Promise<Map<string, string> | null> {
  if (
    log === null
      ? entries.length === 0 || (known.size === 0 && key === undefined)
      : entries.length === 0 && head === null
  )
    return null;
  const verifier = key ?? (await log?.key()) ?? null;
  if (verifier === null) throw usageError('name the key of the log: --key, or --config with receipts.path');
  if (key === undefined) note(io, `the key is what ${log?.name} says: give --key to trust nobody there`);
  const asked = log === null ? null : await askLog(log, verifier, entries, head);
  const isOther = asked !== null && head?.origin === verifier.name && !asked.isAsSaid;
  if (isOther)
    differences.push(
      `the log had ${head.size} entries at the time of the receipt, and other ones: it was made again`,
    );
  const proven = new Map<string, string>();
  for (const entry of entries) {
    const text = (asked === null ? known : asked.proofs).get(entry);
    // A log that is whole, as the receipt says it was, never had it: the receipt may name what an earlier log has.
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
): Promise<{ readonly proofs: ReadonlyMap<string, string | null>; readonly isAsSaid: boolean }> {
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
  return { proofs, isAsSaid: head === null || head.size === 0 || root === head.root };
}

/** A sound proof of the entry, or why it is none. */
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
