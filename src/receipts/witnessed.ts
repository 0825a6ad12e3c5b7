import type { LogSource } from './log-source.ts';
import { cosignaturesIn, openCheckpoint, type NoteVerifier, type TreeHead } from './note.ts';

/** Who has signed a checkpoint beside its log and when, in words; or why that is not enough. */
export type Witnessed =
  { readonly ok: true; readonly by: readonly string[] } | { readonly ok: false; readonly reason: string };

/** Whether each of these witnesses has signed a checkpoint: one signs no two logs of a name. */
export function witnessed(checkpoint: string, witnesses: readonly NoteVerifier[]): Witnessed {
  const by: string[] = [];
  for (const witness of witnesses) {
    const time = cosignaturesIn(checkpoint, witness)[0]?.time;
    if (time === undefined) return { ok: false, reason: `not signed by the witness ${witness.name}` };
    by.push(`signed by ${witness.name} at ${textOf(time)}`);
  }
  return { ok: true, by };
}

/** Of a log, how far all of these witnesses have signed it. */
export interface WitnessedHead {
  /** Null when they have not signed any of it. */
  readonly head: TreeHead | null;
  readonly by: readonly string[];
  readonly reason: string | null;
}

/** @param verifier of the log, which must have signed it too */
export async function witnessedHead(
  log: LogSource,
  verifier: NoteVerifier,
  witnesses: readonly NoteVerifier[],
): Promise<WitnessedHead> {
  const note = (await log.cosigned()) ?? '';
  const head = openCheckpoint(note, verifier);
  const found = witnessed(note, witnesses);
  if (!found.ok) return { head: null, by: [], reason: found.reason };
  return { head, by: found.by, reason: head === null ? `not signed by the key of ${verifier.name}` : null };
}

/** @param time seconds since the epoch, as a witness says it: any number */
function textOf(time: number): string {
  const date = new Date(time * 1000);
  return Number.isNaN(date.getTime()) ? `second ${time}` : date.toISOString();
}
