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

/**
 * What erasures have destroyed, noted apart from the key stores: one of them that is put back from a copy is found to be
 * older. Each line is signed.
 */
export interface KeyLedger {
  readonly path: string;
  /** @throws MillraceError ledger_forged when a line is not as it was signed */
  entries(store: string): readonly LedgerEntry[];
  /** Durable once it resolves. */
  append(entries: readonly LedgerEntry[]): Promise<void>;
}

/** What an installation proves its archives with; it lies apart from them. */
export interface Proof {
  /** Of manifest lines and receipts. */
  readonly signer: Signer;
  readonly ledger: KeyLedger;
}

/** Opens it when it is needed first, for most never are. @throws MillraceError proof_unusable */
export type OpenProof = () => Promise<Proof>;
