import { z } from 'zod';
import { isRecord, jsonIn } from '../lib/parsed.ts';
import type { Proof } from './proof.ts';
import type { LogHead } from './receipt.ts';
import { signJson, type Signer } from './signature.ts';

/**
 * The manifest of an archive: JSON lines, each with the hash of the line before it. Lines are only added. The newest line of a
 * file counts:
 *
 * - a file was closed: `{"file","records","bytes","sha256","first_received_at","last_received_at","types","previous"}`;
 * - a compaction made one file of others: as a file line, with `"replaces":[{"file","records","bytes","sha256"},…]` before
 *   `"previous"`. The file has the bytes of those files one after another, in this order, so that their lines can still be
 *   checked. From this line on they do not count, even if they still exist;
 * - a large event was kept in a file of its own: `{"claim_check","file","event_type","bytes","sha256","body_sha256","previous"}`;
 * - an erasure rewrote or removed a file, also an open one, which no other line lists:
 *   `{"erasure","at","file","removed","records","bytes","sha256",…as a file line…,"previous"}`.
 *
 * A change first makes the new file durable under its final name (or removes the old one), and then adds the line by
 * `ManifestWriter.append`. Verifying names the difference that a crash between the two leaves; the same change done again
 * repairs it. Hashes are lower-case hex SHA-256, times ISO 8601 in UTC with milliseconds, sizes those on disk.
 *
 * A line ends in `"signed_by","signature"`, as in `signature.ts`, over all before it, with the link to the previous line: without
 * the key, one can only add unsigned lines, or cut off the end. The first signed line also proves unsigned lines before it.
 */
export type ManifestLine = FileLine | ClaimLine | ErasureLine;

// Of any length: a line with a changed digit is reported as a mismatch, and not as unreadable.
const sha256 = z.string();
const count = z.number().int().nonnegative();
// z.record would drop a type named __proto__.
const types = z.custom<Readonly<Record<string, number>>>(
  (value) => isRecord(value) && Object.values(value).every((n) => count.safeParse(n).success),
);

/** Path in the archive folder, `/`-separated. */
const file = z.string().refine(isInside);
const end = {
  /** Set when a repair, not the file's writer, added the line: the file is proven only from then on. */
  repaired_at: z.string().optional(),
  /** Head of the log of receipts at that time; absent without one. */
  log: z.object({ origin: z.string(), size: count, root: z.string() }).optional(),
  /** Hash of the previous line without its line break; of the empty string for the first. */
  previous: sha256,
};

// Unknown fields are allowed, for newer versions; the hash covers them.
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
  /** Of a compaction: its files, in the order of their bytes. */
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
  /** Hash of the event's bytes, as in its pointer; `sha256` is that of the compressed file. */
  body_sha256: sha256,
  ...end,
});

const erasureLine = z.object({
  /** Id of the receipt. */
  erasure: z.string(),
  /** When the file was rewritten or removed. */
  at: z.string(),
  file,
  /** Records removed by this rewrite. */
  removed: count,
  /** Records and bytes of the file now; 0 for a removed file or kept event. */
  records: count,
  bytes: count,
  sha256: sha256.nullable(),
  /** As in a file line, of the remaining records; null without any. */
  first_received_at: z.string().nullable(),
  last_received_at: z.string().nullable(),
  types,
  ...end,
});

/** A closed file of records. */
export type FileLine = Readonly<z.output<typeof fileLine>>;

/** A file that a compaction made. */
export type CompactionLine = FileLine & { readonly replaces: NonNullable<FileLine['replaces']> };

/** An event that was too large for a sink, kept whole. */
type ClaimLine = Readonly<z.output<typeof claimLine>>;

/** A file after an erasure. With `sha256: null` it is removed, and every count is 0. */
export type ErasureLine = Readonly<z.output<typeof erasureLine>>;

/** A line without its link to the previous one. */
export type NewManifestLine =
  Omit<FileLine, 'previous'> | Omit<ClaimLine, 'previous'> | Omit<ErasureLine, 'previous'>;

/** A manifest line without its line break: the fields in their order, the link, the signature. Always the same for the same line. */
export function formatManifestLine(
  line: NewManifestLine,
  previous: string,
  { signer = null, log = null }: { readonly signer?: Signer | null; readonly log?: LogHead | null } = {},
): string {
  const text = JSON.stringify(log === null ? { ...line, previous } : { ...line, log, previous });
  return signer === null ? text : signJson('manifest', text, signer);
}

/** The signer, and the head of the log of receipts, of new lines. */
export function partsOf(proof: Pick<Proof, 'signer' | 'logHead'> | undefined): {
  readonly signer?: Signer;
  readonly log?: LogHead | null;
} {
  return proof === undefined ? {} : { signer: proof.signer, log: proof.logHead() };
}

/** Null for a line of another format, also when its path would leave the archive. */
export function parseManifestLine(line: string): ManifestLine | null {
  const value = jsonIn(line);
  return schemaOf(value).safeParse(value).data ?? null;
}

/** By its first key, so that a broken erasure line is no file line. */
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
