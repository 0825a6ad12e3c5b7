import { createPrivateKey, createPublicKey } from 'node:crypto';
import { join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { KeyLedger, NotedHead, OpenProof, Proof } from '../../core/proof.ts';
import type { LogHead } from '../../core/receipt.ts';
import type { Signer } from '../../core/signature.ts';
import { readIfThere } from '../../lib/durable.ts';
import { openKeyPem } from '../../lib/key-pem.ts';
import { DroppedFile } from './dropped.ts';
import { HeadFiles } from './heads.ts';
import { LedgerFile } from './ledger.ts';

/** C2SP tlog-checkpoint: its first three lines. */
const CHECKPOINT = /^([^\n]+)\n(\d{1,15})\n([A-Za-z0-9+/]{43}=)\n/;

/** Where the parts of a proof lie, as the config says it. */
export interface ProofPlace {
  readonly erasure: { readonly path: string };
  readonly proof: {
    /** File of the private key; null for the default, in the erasure folder. */
    readonly key: string | null;
    /** Public keys of others that may have signed: an earlier key, other receivers. */
    readonly trust: readonly string[];
  };
  readonly receipts: { readonly path: string | null };
}

/**
 * For who writes: opened when it is asked for the first time, and the key is then made when there is none.
 * @param heads where those that are read or noted by this process are kept, by folder
 * @returns what rejects with MillraceError proof_unusable, and may be called again
 */
export function openProof(place: ProofPlace, heads = new Map<string, NotedHead>()): OpenProof {
  let opened: Promise<Proof> | null = null;
  return () => {
    opened ??= open(place, heads).catch((error: unknown) => {
      opened = null;
      throw error;
    });
    return opened;
  };
}

async function open(place: ProofPlace, heads: Map<string, NotedHead>): Promise<Proof> {
  const signer = await openSigner(keyFile(place));
  return {
    signer,
    heads: headsOf(place, signer, heads),
    ledger: ledgerOf(place, signer),
    dropped: droppedOf(place, signer),
    logHead: () => logHeadIn(place.receipts.path),
  };
}

/** What says more than needed must not hold up an archive: nothing where it cannot be read. */
function logHeadIn(folder: string | null): LogHead | null {
  try {
    const note = folder === null ? null : readIfThere(join(folder, 'checkpoint'));
    const [, origin = '', size = '', root = ''] = CHECKPOINT.exec(note ?? '') ?? [];
    return root === '' ? null : { origin, size: Number(size), root };
  } catch {
    return null;
  }
}

/** For who reads: nothing is made. @throws MillraceError proof_unusable */
export function readProof(place: ProofPlace): {
  readonly keyFile: string;
  /** Null where there is no key yet. */
  readonly publicKey: string | null;
  /** Public keys whose signatures count; empty where none is known yet. */
  readonly trusted: ReadonlySet<string>;
  readonly heads: HeadFiles;
  readonly ledger: KeyLedger;
  readonly dropped: DroppedFile;
} {
  const file = keyFile(place);
  const signer = readSigner(file);
  return {
    keyFile: file,
    publicKey: signer?.publicKey ?? null,
    trusted: trustedBy(place, signer),
    heads: headsOf(place, signer),
    ledger: ledgerOf(place, signer),
    dropped: droppedOf(place, signer),
  };
}

function keyFile({ erasure, proof }: ProofPlace): string {
  return proof.key ?? join(erasure.path, 'manifest.key');
}

function ledgerOf(place: ProofPlace, signer: Signer | null): KeyLedger {
  return new LedgerFile(join(place.erasure.path, 'ledger.jsonl'), signer, trustedBy(place, signer));
}

function droppedOf(place: ProofPlace, signer: Signer | null): DroppedFile {
  return new DroppedFile(join(place.erasure.path, 'dropped.jsonl'), signer, trustedBy(place, signer));
}

function headsOf(place: ProofPlace, signer: Signer | null, known?: Map<string, NotedHead>): HeadFiles {
  return new HeadFiles(join(place.erasure.path, 'heads'), signer, trustedBy(place, signer), known);
}

function trustedBy({ proof }: ProofPlace, signer: Signer | null): ReadonlySet<string> {
  return new Set(signer === null ? proof.trust : [...proof.trust, signer.publicKey]);
}

/**
 * The key that signs, from its file: Ed25519, PKCS #8 in PEM.
 * @returns null when there is no such file
 * @throws MillraceError proof_unusable
 */
export function readSigner(path: string): Signer | null {
  try {
    const pem = readIfThere(path);
    return pem === null ? null : signerOf(pem);
  } catch (error) {
    throw unusable(path, error);
  }
}

/** The same; the key is made, for its owner only, where there is none. */
export async function openSigner(path: string): Promise<Signer> {
  try {
    return signerOf(await openKeyPem(path));
  } catch (error) {
    throw unusable(path, error);
  }
}

function signerOf(pem: string): Signer {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('is not an Ed25519 key');
  return { key, publicKey: createPublicKey(key).export({ format: 'jwk' }).x ?? '' };
}

function unusable(path: string, error: unknown): MillraceError {
  return new MillraceError('proof_unusable', `${path}: ${messageOf(error)}`, { cause: error });
}
