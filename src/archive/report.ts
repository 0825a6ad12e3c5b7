/** Most differences listed for one file; the rest are counted. */
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

/** Something that is not as the manifest or a signature says. */
export interface Difference {
  readonly code: DifferenceCode;
  /** Relative to the archive. */
  readonly file: string;
  /** Counted from 1; null when it concerns the file as a whole. */
  readonly line: number | null;
  readonly detail: string;
}

/** The result of `verifyArchive`; without differences the archive is sound. */
export type VerifyReport = ReturnType<VerifyTally['report']>;

/**
 * The lines of a manifest; `unsigned` are those before the first signed one. `keys` are the public keys that signed,
 * `known` the given ones among them, `heads` the number of expected heads.
 */
export interface ManifestReport {
  readonly lines: number;
  /** Hash of the last line, which proves later that no end was cut off; empty where there are several writers. */
  readonly head: string;
  /** Chains of an archive in a store. */
  readonly writers?: readonly { readonly writer: string; readonly lines: number; readonly head: string }[];
  readonly signed: number;
  readonly unsigned: number;
  readonly keys: readonly { readonly key: string; readonly known: boolean }[];
  readonly heads: number;
}

/** Builds a report. */
export class VerifyTally {
  /** Finished files, their readable records, and their bytes on disk. */
  files = 0;
  records = 0;
  bytes = 0;
  /** Events kept whole in files of their own. */
  claims = 0;
  manifest: ManifestReport = { lines: 0, head: '', signed: 0, unsigned: 0, keys: [], heads: 0 };
  /**
   * Records by their signature; all 0 without a verifier. `unmatched`: by none of the given secrets, because the event was
   * changed or the secret is another. `invalid`: wrong for any secret. `unsigned`: received without a signature.
   */
  readonly signatures = { verified: 0, unmatched: 0, invalid: 0, unsigned: 0 };
  /** Sealed records: `closed` without their key, `erased` when it was destroyed. Neither signature can be checked. */
  readonly sealed = { opened: 0, closed: 0, erased: 0 };
  /** Records whose envelopes were compared with their bodies, and those with unreadable bodies. */
  readonly envelopes = { compared: 0, unreadable: 0 };
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

  /** Adds a difference of a whole file. */
  differs(file: string, code: DifferenceCode, detail: string): void {
    this.differ({ code, file, line: null, detail });
  }

  /** Adds what is no fault: an unfinished file, a superseded line of the manifest. */
  note(file: string, detail: string): void {
    this.#notes.push({ file, detail });
  }

  /** @param path the archive's absolute folder, or its URL */
  report(path: string) {
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
