import { z } from 'zod';
import { isRecord } from '../lib/is-record.ts';
import { jsonIn } from '../lib/parsed.ts';
import type { Proof } from './proof.ts';
import type { LogHead } from './receipt.ts';
import { signJson, type Signer } from './signature.ts';

/**
 * The manifest of an archive: JSON lines, each with the hash of the one before it. Lines are only ever added. A file is
 * judged by its newest line, whichever kind that is:
 *
 * - a file was finished: `{"file","records","bytes","sha256","first_received_at","last_received_at","types","previous"}`;
 * - a compaction made one file of others: as a file line, with `"replaces":[{"file","records","bytes","sha256"},…]` before
 *   `"previous"`. The file is those files' bytes one after another, in this order, so that what earlier lines say of them can
 *   still be checked in it. From this line on they do not count, whether they are still there or not;
 * - a large event was kept whole in a file of its own: `{"claim_check","file","event_type","bytes","sha256","body_sha256","previous"}`;
 * - an erasure rewrote a file or removed it, or an unfinished one, which no other line lists:
 *   `{"erasure","at","file","removed","records","bytes","sha256",…as a file line…,"previous"}`.
 *
 * Who changes a file does it in this order: the new file durable under its final name (or the old one removed), then
 * the line, by `ManifestWriter.append`. A crash between the two is a difference that verifying names; doing the change
 * again mends it, so a change must be repeatable. Hashes are lower-case hex SHA-256, times ISO 8601 in UTC with
 * milliseconds, sizes as they lie on disk.
 *
 * A line ends in `"signed_by","signature"`, as `signature.ts` says them, over all that stands before it, the link to the
 * line before it among that: who has the disk and not the key can only add what is not signed, or cut off the end. What was
 * written before lines were signed has neither; the first signed line vouches for it.
 */
export type ManifestLine = FileLine | ClaimLine | ErasureLine;

// Not held to 64 digits: a line with a digit changed is better named for what it no longer matches.
const sha256 = z.string();
const count = z.number().int().nonnegative();
// Not a record of zod's, which would drop a type named __proto__.
const types = z.custom<Readonly<Record<string, number>>>(
  (value) => isRecord(value) && Object.values(value).every((n) => count.safeParse(n).success),
);

/** Path inside the archive folder, `/`-separated. */
const file = z.string().refine(isInside);
/** Ends each line. */
const end = {
  /** Set where a repair listed the file, not the writer that made it: from then on it is proven, not before. */
  repaired_at: z.string().optional(),
  /** Where the log of receipts ended when the line was written; absent without one. */
  log: z.object({ origin: z.string(), size: count, root: z.string() }).optional(),
  /** Hash of the previous line without its line break; of the empty string for the first. */
  previous: sha256,
};

// Fields that are not known here are for a newer reader; the chain covers them all the same.
const fileLine = z.object({
  file,
  records: count,
  bytes: count,
  sha256,
  /** Of the first and the last record by `received_at`. */
  first_received_at: z.string(),
  last_received_at: z.string(),
  /** Records per event type. */
  types,
  /** Of a compaction: the files whose bytes these are, in their order. */
  replaces: z.array(z.object({ file, records: count, bytes: count, sha256 })).optional(),
  ...end,
});

const claimLine = z.object({
  /** Id of the event. */
  claim_check: z.string(),
  file,
  event_type: z.string(),
  bytes: count,
  sha256,
  /** Hash of the event's own bytes, as in its pointer: another than `sha256` where the file is compressed. */
  body_sha256: sha256,
  ...end,
});

const erasureLine = z.object({
  /** Id of the receipt. */
  erasure: z.string(),
  /** When the file was rewritten or removed. */
  at: z.string(),
  file,
  /** Records taken out by this rewrite. */
  removed: count,
  /** What the file holds now; 0 for a removed file, and for a kept event that is removed. */
  records: count,
  bytes: count,
  sha256: sha256.nullable(),
  /** As in a file line, of what is left; null when no record is. */
  first_received_at: z.string().nullable(),
  last_received_at: z.string().nullable(),
  types,
  ...end,
});

/** One finished file of records. */
export type FileLine = Readonly<z.output<typeof fileLine>>;

/** A file that a compaction made, and of what. */
export type CompactionLine = FileLine & { readonly replaces: NonNullable<FileLine['replaces']> };

/** One event too large for a sink, kept whole; what points at it carries its path too. */
type ClaimLine = Readonly<z.output<typeof claimLine>>;

/** What an erasure left of a file. With `sha256: null` it left nothing: the file is removed, and every count is 0. */
export type ErasureLine = Readonly<z.output<typeof erasureLine>>;

/** A line to be added; its link to the one before it is made when it is. */
export type NewManifestLine =
  Omit<FileLine, 'previous'> | Omit<ClaimLine, 'previous'> | Omit<ErasureLine, 'previous'>;

/**
 * A manifest line without its line break; fields in the order they were given, the link last but for the signature.
 * Signing the same line again gives the same signature.
 */
export function formatManifestLine(
  line: NewManifestLine,
  previous: string,
  { signer = null, log = null }: { readonly signer?: Signer | null; readonly log?: LogHead | null } = {},
): string {
  const text = JSON.stringify(log === null ? { ...line, previous } : { ...line, log, previous });
  return signer === null ? text : signJson('manifest', text, signer);
}

/** What a line says beside its entry. */
export function partsOf(proof: Pick<Proof, 'signer' | 'logHead'> | undefined): {
  readonly signer?: Signer;
  readonly log?: LogHead | null;
} {
  return proof === undefined ? {} : { signer: proof.signer, log: proof.logHead() };
}

/** The entry on a manifest line, or null when the line is not one. A path that would leave the archive is not one. */
export function parseManifestLine(line: string): ManifestLine | null {
  const value = jsonIn(line);
  return schemaOf(value).safeParse(value).data ?? null;
}

/** Told by its first key, so that what is wrong with an erasure line cannot make it a file line. */
function schemaOf(value: unknown): z.ZodType<ManifestLine> {
  if (!isRecord(value)) return fileLine;
  if ('erasure' in value) return erasureLine;
  return 'claim_check' in value ? claimLine : fileLine;
}

export function isCompaction(line: ManifestLine): line is CompactionLine {
  return 'replaces' in line && line.replaces !== undefined;
}

function isInside(name: string): boolean {
  return (
    !/[\\\0]/.test(name) && name.split('/').every((level) => level !== '' && level !== '.' && level !== '..')
  );
}
