import type { ErasureReceipt } from './erasure.ts';
import type { LogHead, SetAsideKind } from './receipt.ts';
import type { Signer } from './signature.ts';

/** One key that an erasure has destroyed; the first line of a store has none, and says only that the store is known. */
export interface LedgerEntry {
  /** Id of the key store: 16 hex digits, the same after its master key has changed. */
  readonly store: string;
  /** Counts the keys destroyed in that store, from 1; 0 for the first line. */
  readonly epoch: number;
  /** Id of the key; null for the first line. */
  readonly key: string | null;
}

/** What a folder had when a key store was open there last. */
export interface SeenStore {
  /** Id of the key store. */
  readonly store: string;
  /** Id of the last key in it, be it destroyed; null when it had none. */
  readonly newest: string | null;
}

/**
 * What erasures have destroyed, noted apart from the key stores: one of them that is restored from a copy is found to be
 * older. Each line is signed.
 */
export interface KeyLedger {
  readonly path: string;
  /** @throws MillraceError ledger_forged when a line is not as it was signed */
  entries(store: string): readonly LedgerEntry[];
  /** Durable once it resolves. */
  append(entries: readonly LedgerEntry[]): Promise<void>;
  /**
   * What was noted last of this folder, which is absolute, and where; null when nothing was. Who holds no lock asks before reading the store.
   * @throws MillraceError ledger_forged when it is not as it was signed
   */
  seen(folder: string): (SeenStore & { readonly path: string }) | null;
  /** Durable once it resolves. */
  see(folder: string, store: SeenStore): Promise<void>;
}

/** Entries of the log of receipts whose events a person drops from where they wait. */
export interface DroppedNote {
  readonly from: SetAsideKind;
  /** Whose dead letters they are; null of a quarantine. */
  readonly sink: string | null;
  /** What tells the place of the archive that the sink writes; null where it writes none, or is not configured any more. Absent of a quarantine, and until `droppedBy` adds it. */
  readonly archive?: string | null;
  /** `begun` before they are dropped, `done` after it: what says `begun` alone may be where it was, or anywhere. */
  readonly state: 'begun' | 'done';
  /** Base64. */
  readonly entries: readonly string[];
}

/** Which entries of the log of receipts are of events that a person dropped. */
export interface DroppedEntries {
  /** Durable once it resolves. */
  append(notes: readonly DroppedNote[]): Promise<void>;
}

/** Where a manifest ended at some time. */
export interface ManifestHead {
  /** Hash of its last line; of the empty string when there was none. */
  readonly head: string;
  /** Its size, that line and its line break included. */
  readonly bytes: number;
}

/** The head of an archive that was noted last. */
export interface NotedHead extends ManifestHead {
  /** Heads that were noted before it, and that the manifest does not hold any more. */
  readonly lost: number;
}

/** Heads of manifests, noted apart from them: one that is restored from a copy does not hold the head noted last. */
export interface Heads {
  /** The one noted last of the archive in this folder, which is absolute; null when none was. */
  of(root: string): ManifestHead | null;
  /**
   * Durable once it resolves. To be called under the manifest's lock.
   * @param lost the one noted before, when the manifest does not hold it any more: that stays on record
   */
  note(root: string, head: ManifestHead, lost: ManifestHead | null): Promise<void>;
  /** Notes, before its first byte, where an archive lies, its spool, and which sink writes it. Durable once it resolves. */
  noteWriter(place: string, writer: { readonly sink: string; readonly spool?: string }): Promise<void>;
  /** @throws MillraceError proof_unusable */
  archives(): readonly NotedArchive[];
  /** Files of notes that are not as they were signed, or by a key that is not trusted: nobody knows of which archive. */
  forged(): readonly string[];
}

/** Where an archive lies that this installation has written. */
export interface NotedArchive {
  /** Absolute path, without links; or URL. */
  readonly place: string;
  /** Names of the sinks that have written it, under whatever config. */
  readonly sinks: readonly string[];
  /** Of a store: folders in which files of it have waited. */
  readonly spools: readonly string[];
  /** Files of the notes. */
  readonly notes: readonly string[];
}

/** What an installation proves its archives with; it lies apart from them. */
export interface Proof {
  /** Of manifest lines and receipts. */
  readonly signer: Signer;
  readonly heads: Heads;
  readonly ledger: KeyLedger;
  readonly dropped: DroppedEntries;
  /** What manifest lines and receipts of erasures say of the log of receipts: a log that is made again contradicts them. Null without one. */
  logHead(): LogHead | null;
}

/** Opens it when it is needed first, for most never are. @throws MillraceError proof_unusable */
export type OpenProof = () => Promise<Proof>;

/** What there is of one erasure's receipt. `under_way`: the request is not done, so there is none yet. */
export type ReceiptFile =
  | { readonly state: 'missing' }
  | { readonly state: 'under_way' }
  | { readonly state: 'forged' }
  | {
      readonly state: 'signed';
      readonly items: ErasureReceipt['items'];
      /** How the log of receipts ended then; null where it does not say. */
      readonly log: LogHead | null;
    };

/** The receipts of an installation. */
export interface Receipts {
  readonly folder: string;
  of(id: string): ReceiptFile;
}
