import { createPrivateKey, createPublicKey } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { NotedHead, OpenProof, Proof } from '../../core/proof.ts';
import type { LogHead } from '../../core/receipt.ts';
import type { Signer } from '../../core/signature.ts';
import { readIfThere } from '../../lib/durable.ts';
import { openKeyPem } from '../../lib/key-pem.ts';
import { unverifiedHead } from '../receipts/note.ts';
import { DroppedFile } from './dropped.ts';
import { HeadFiles } from './heads.ts';
import { LedgerFile } from './ledger.ts';
import { reading, SignedFiles } from './signed-files.ts';

/** The part of a config that says where a proof is kept. */
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
 * Opens the proof for writing, at the first call of what it returns; the key is made when there is none. After a failure the
 * next call tries again.
 * @param known is filled with the heads that this process notes or reads, by folder
 */
export function openProof(place: ProofPlace, known = new Map<string, NotedHead>()): OpenProof {
  let opened: Promise<Proof> | null = null;
  const open = async (): Promise<Proof> => {
    refuseNewKey(place);
    const signer = await openSigner(keyFile(place));
    return { signer, ...partsOf(place, signer, known), logHead: () => logHeadIn(place.receipts.path) };
  };
  return () => {
    opened ??= open().catch((error: unknown) => {
      opened = null;
      throw error;
    });
    return opened;
  };
}

/** @throws MillraceError proof_unusable when the key is missing and has signed: with a new one, nothing before it would prove anything */
function refuseNewKey(place: ProofPlace): void {
  if (existsSync(keyFile(place))) return;
  const [note] = partsOf(place, null).heads.forged();
  if (note === undefined) return;
  throw new MillraceError(
    'proof_unusable',
    `${keyFile(place)} is not there, and ${note} was signed with it: put it back, or have a new key made by adding the note's signed_by to proof.trust`,
  );
}

/** Null also when it cannot be read: an archive is written all the same. */
function logHeadIn(folder: string | null): LogHead | null {
  try {
    const note = folder === null ? null : readIfThere(join(folder, 'checkpoint'));
    return note === null ? null : unverifiedHead(note);
  } catch {
    return null;
  }
}

/** The proof for reading: makes nothing. @throws MillraceError proof_unusable */
export function readProof(place: ProofPlace) {
  const file = keyFile(place);
  const signer = readSigner(file);
  return {
    keyFile: file,
    /** Null when there is no key yet. */
    publicKey: signer?.publicKey ?? null,
    /** Public keys whose signatures count; empty when none is known yet. */
    trusted: trustedBy(place, signer),
    ...partsOf(place, signer),
  };
}

function keyFile({ erasure, proof }: ProofPlace): string {
  return proof.key ?? join(erasure.path, 'manifest.key');
}

function partsOf(place: ProofPlace, signer: Signer | null, known?: Map<string, NotedHead>) {
  const { path } = place.erasure;
  const files = new SignedFiles(signer, trustedBy(place, signer));
  return {
    heads: new HeadFiles(join(path, 'heads'), files, known),
    ledger: new LedgerFile(path, files),
    dropped: new DroppedFile(join(path, 'dropped.jsonl'), files),
  };
}

function trustedBy({ proof }: ProofPlace, signer: Signer | null): ReadonlySet<string> {
  return new Set(signer === null ? proof.trust : [...proof.trust, signer.publicKey]);
}

/** The key that signs, Ed25519 as PKCS #8 in PEM; null when there is no such file. @throws MillraceError proof_unusable */
export function readSigner(path: string): Signer | null {
  return reading(path, () => {
    const pem = readIfThere(path);
    return pem === null ? null : signerOf(pem);
  });
}

/** The key that signs, made for its owner only when there is none. @throws MillraceError proof_unusable */
export async function openSigner(path: string): Promise<Signer> {
  try {
    return signerOf(await openKeyPem(path));
  } catch (error) {
    throw new MillraceError('proof_unusable', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

function signerOf(pem: string): Signer {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('is not an Ed25519 key');
  return { key, publicKey: createPublicKey(key).export({ format: 'jwk' }).x ?? '' };
}
