/** Differences named singly for a file; the rest are counted, so that a ruined file does not fill the memory. */
const NAMED = 20;

export type DifferenceCode =
  | 'manifest_missing'
  | 'manifest_line_invalid'
  | 'chain_broken'
  | 'segment_missing'
  | 'segment_differs'
  | 'head_missing'
  | 'head_forged'
  | 'manifest_unsigned'
  | 'line_forged'
  | 'line_unsigned'
  | 'line_untrusted'
  | 'receipt_missing'
  | 'receipt_forged'
  | 'receipt_differs'
  | 'file_missing'
  | 'file_extra'
  | 'file_returned'
  | 'file_truncated'
  | 'file_changed'
  | 'file_not_followed'
  | 'file_unreadable'
  | 'record_invalid'
  | 'record_repeated'
  | 'envelope_differs'
  | 'counts_differ'
  | 'compaction_differs'
  | 'signature_unmatched'
  | 'signature_invalid'
  | 'keys_stale'
  | 'slot_returned'
  | 'tombstone_forged'
  | 'ledger_forged';

/** One thing that is not as the manifest, or a signature, says. */
export interface Difference {
  readonly code: DifferenceCode;
  /** Relative to the archive. */
  readonly file: string;
  /** Counted from 1; null when it concerns the file as a whole. */
  readonly line: number | null;
  readonly detail: string;
}

/** What `verifyArchive` found. The archive is sound when there are no differences. */
export interface VerifyReport {
  /** The archive's folder, absolute. */
  readonly path: string;
  /** Finished files read, their records that could be read, and their bytes on disk. */
  readonly files: number;
  readonly records: number;
  readonly bytes: number;
  /** Events kept whole in files of their own. */
  readonly claim_checks: number;
  /** Lines of the manifest, and the hash of the last one: noted down, it proves later that no end was cut off. */
  readonly manifest: ManifestReport;
  readonly signatures: Readonly<SignatureCounts>;
  readonly sealed: Readonly<SealedCounts>;
  readonly envelopes: Readonly<EnvelopeCounts>;
  readonly differences: readonly Difference[];
  /** Worth knowing, and no fault: unfinished files, manifest lines superseded by later ones. */
  readonly notes: readonly { readonly file: string; readonly detail: string }[];
}

/**
 * Its lines, by what signs them: `unsigned` were written before lines were signed. `keys` are the public keys that signed;
 * `known` says whether each is one that was given. `heads` are the ones that were noted and looked for.
 */
export interface ManifestReport {
  readonly lines: number;
  /** Empty where there are several writers. */
  readonly head: string;
  /** Of an archive in a store: the chain of each writer. */
  readonly writers?: readonly { readonly writer: string; readonly lines: number; readonly head: string }[];
  readonly signed: number;
  readonly unsigned: number;
  readonly keys: readonly { readonly key: string; readonly known: boolean }[];
  readonly heads: number;
}

/**
 * Records by what their signature says; all 0 without a verifier. `unmatched`: no secret that was given fits, because the
 * event was changed or the secret is another. `invalid`: wrong whatever the secret. `unsigned`: came without one.
 */
export interface SignatureCounts {
  verified: number;
  unmatched: number;
  invalid: number;
  unsigned: number;
}

/**
 * Sealed records, which are among the records: `closed` for want of keys, or of their key; `erased`: their key was
 * destroyed. Neither can have its signature checked.
 */
export interface SealedCounts {
  opened: number;
  closed: number;
  erased: number;
}

/** Records whose type and ids were compared with those in their bodies, and those of which the body cannot be read. */
export interface EnvelopeCounts {
  compared: number;
  unreadable: number;
}

/** Gathers a report. */
export class Tally {
  files = 0;
  records = 0;
  bytes = 0;
  claims = 0;
  manifest: ManifestReport = { lines: 0, head: '', signed: 0, unsigned: 0, keys: [], heads: 0 };
  readonly signatures: SignatureCounts = { verified: 0, unmatched: 0, invalid: 0, unsigned: 0 };
  readonly sealed: SealedCounts = { opened: 0, closed: 0, erased: 0 };
  readonly envelopes: EnvelopeCounts = { compared: 0, unreadable: 0 };
  readonly #differences: Difference[] = [];
  readonly #notes: { file: string; detail: string }[] = [];
  #file = '';
  #ofFile = 0;

  differ(difference: Difference): void {
    this.#ofFile = difference.file === this.#file ? this.#ofFile + 1 : 1;
    this.#file = difference.file;
    if (this.#ofFile <= NAMED) this.#differences.push(difference);
    else this.#countUnnamed(difference);
  }

  /** The same, of a file as a whole. */
  differs(file: string, code: DifferenceCode, detail: string): void {
    this.differ({ code, file, line: null, detail });
  }

  note(file: string, detail: string): void {
    this.#notes.push({ file, detail });
  }

  report(path: string): VerifyReport {
    const { files, records, bytes, claims: claim_checks, manifest, signatures, sealed, envelopes } = this;
    const found = { differences: this.#differences, notes: this.#notes };
    return { path, files, records, bytes, claim_checks, manifest, signatures, sealed, envelopes, ...found };
  }

  #countUnnamed({ code, file }: Difference): void {
    if (this.#ofFile > NAMED + 1) this.#differences.pop();
    const detail = `and ${this.#ofFile - NAMED} more in this file`;
    this.#differences.push({ code, file, line: null, detail });
  }
}
