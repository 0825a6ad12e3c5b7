import type { ErasureReceipt } from './erasure.ts';
import type { LogHead, SetAsideKind } from './receipt.ts';
import type { Signer } from './signature.ts';

/** One key that an erasure has destroyed. The first line of a store has no key: it notes that the store exists. */
export interface LedgerEntry {
  /** Id of the key store: 16 hex digits; a change of the master key does not change it. */
  readonly store: string;
  /** Number of the key among those destroyed in that store, from 1; 0 for the first line. */
  readonly epoch: number;
  /** Id of the key; null for the first line. */
  readonly key: string | null;
}

/** The key store that a folder had when it was last opened. */
export interface SeenStore {
  /** Id of the key store. */
  readonly store: string;
  /** Id of its last key, destroyed or not; null when it had none. */
  readonly newest: string | null;
}

/** Signed lines about destroyed keys, kept apart from the key stores: it shows when a store was replaced by an older copy. */
export interface KeyLedger {
  readonly path: string;
  /** @throws MillraceError ledger_forged when a line does not match its signature */
  entries(store: string): readonly LedgerEntry[];
  /** Durable once it resolves. */
  append(entries: readonly LedgerEntry[]): Promise<void>;
  /**
   * The last note of this absolute folder, and the file of the note; null without one. Without a lock, call it before reading the store.
   * @throws MillraceError ledger_forged when the note does not match its signature
   */
  seen(folder: string): (SeenStore & { readonly path: string }) | null;
  /** Durable once it resolves. */
  see(folder: string, store: SeenStore): Promise<void>;
}

/** Entries of the log of receipts whose events a person drops from quarantine or dead letters. */
export interface DroppedNote {
  readonly from: SetAsideKind;
  /** Sink of the dead letters; null for quarantined events. */
  readonly sink: string | null;
  /** Key of the archive that the sink writes; null where it writes none, or is no longer configured. `droppedBy` adds it. */
  readonly archive?: string | null;
  /** `begun` is noted before they are dropped, `done` afterwards: with `begun` alone they may be there, or dropped. */
  readonly state: 'begun' | 'done';
  /** Base64. */
  readonly entries: readonly string[];
}

/** Notes the entries of the log of receipts whose events a person has dropped. */
export interface DroppedEntries {
  /** Durable once it resolves. */
  append(notes: readonly DroppedNote[]): Promise<void>;
}

/** The end of a manifest at some time. */
export interface ManifestHead {
  /** Hash of its last line; of the empty string without one. */
  readonly head: string;
  /** Its size. */
  readonly bytes: number;
}

/** The last noted head of an archive. */
export interface NotedHead extends ManifestHead {
  /** Number of earlier noted heads that the manifest does not have any more. */
  readonly lost: number;
}

/** Heads of manifests, noted apart from them: a manifest that was replaced by an older copy lacks the last noted head. */
export interface Heads {
  /** The last noted head of the archive in this absolute folder; null without one. @throws MillraceError proof_unusable for a forged one */
  of(root: string): ManifestHead | null;
  /**
   * Durable once it resolves. To be called under the manifest's lock.
   * @param lost the head noted before, when the manifest does not have it any more: it is kept
   */
  note(root: string, head: ManifestHead, lost: ManifestHead | null): Promise<void>;
  /** Notes the place of an archive, its spool and its sink, before the first byte is written. Durable once it resolves. */
  noteWriter(place: string, writer: { readonly sink: string; readonly spool?: string }): Promise<void>;
  /** @throws MillraceError proof_unusable */
  archives(): readonly NotedArchive[];
  /** Files of notes that do not match their signature, or are signed by an untrusted key. */
  forged(): readonly string[];
}

/** An archive that this installation has written. */
export interface NotedArchive {
  /** Absolute path, without links; or URL. */
  readonly place: string;
  /** Names of the sinks that have written it, under any config. */
  readonly sinks: readonly string[];
  /** Of an archive in a store: folders in which its files were gathered. */
  readonly spools: readonly string[];
  /** Files of the notes. */
  readonly notes: readonly string[];
}

/** Signs archives and receipts, and keeps what proves them apart from them. */
export interface Proof {
  /** Signs manifest lines and receipts. */
  readonly signer: Signer;
  readonly heads: Heads;
  readonly ledger: KeyLedger;
  readonly dropped: DroppedEntries;
  /** Head of the log of receipts, for manifest lines and receipts: a log that is made again contradicts them. Null without one. */
  logHead(): LogHead | null;
}

/** Opens it at the first call. @throws MillraceError proof_unusable */
export type OpenProof = () => Promise<Proof>;

/** The file of an erasure's receipt. `in_progress`: the erasure has not ended. */
export type ReceiptFile =
  | { readonly state: 'missing' }
  | { readonly state: 'in_progress' }
  | { readonly state: 'forged' }
  | {
      readonly state: 'signed';
      readonly items: ErasureReceipt['items'];
      /** Head of the log of receipts then; null without one. */
      readonly log: LogHead | null;
    };

export interface Receipts {
  readonly folder: string;
  of(id: string): ReceiptFile;
}
