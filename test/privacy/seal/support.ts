import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { ErasureRun, Ownership, Subject } from '../../../src/core/erasure.ts';
import type { OpenProof } from '../../../src/core/proof.ts';
import type { KeyRing } from '../../../src/privacy/seal/key-ring.ts';
import { KeyStore, type OwnedKey } from '../../../src/privacy/seal/key-store.ts';
import { proofIn } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';

export const MASTER = Buffer.alloc(32, 1);
export const MASTER_TEXT = `mrk_${MASTER.toString('base64')}`;
export const OTHER = Buffer.alloc(32, 2);

export function owner(n: number, team: string | null = 'team-1') {
  return { team, user: `user-${n}`, clientUser: `client-${n}` };
}

export function subject(id: string, by: 'user' | 'client_user' = 'user', team: string | null = null) {
  return { request: randomBytes(4).toString('hex'), by, id, team };
}

/** A run of an erasure over these subjects that records nothing; leaving anything is unexpected. */
export function runOf(subjects: readonly Subject[], more: Partial<ErasureRun> = {}): ErasureRun {
  return {
    subjects,
    signal: new AbortController().signal,
    recorded: [],
    record: () => Promise.resolve(),
    leave: ({ item, reason }) => {
      throw new Error(`left ${item}: ${reason}`);
    },
    searched: () => undefined,
    onStep: () => undefined,
    ...more,
  };
}

/** Folders of a sealed archive and of its keys. */
export interface Sealed {
  readonly path: string;
  readonly store: string;
  /** Options of its sink. */
  readonly encrypt: { readonly store: string; readonly masterKey: string };
}

export async function sealedPlace(): Promise<Sealed> {
  const folder = await temporaryFolder();
  const store = join(folder, 'keys');
  return { path: join(folder, 'archive'), store, encrypt: { store, masterKey: MASTER_TEXT } };
}

/** A key store whose destroyed keys are in a ledger. */
export class LedgeredKeys {
  readonly folder: string;
  readonly path: string;
  readonly file: string;
  readonly proof: OpenProof;

  private constructor(folder: string) {
    this.folder = folder;
    this.path = join(folder, 'keys');
    this.file = join(this.path, 'keys.bin');
    this.proof = proofIn(join(folder, 'erasure'));
  }

  static async make(): Promise<LedgeredKeys> {
    return new LedgeredKeys(await temporaryFolder());
  }

  async open(master = MASTER): Promise<KeyStore> {
    return KeyStore.open(this.path, master, (await this.proof()).ledger);
  }

  /** Opens the store, has it make keys of these users, and closes it. @returns the file then */
  async used(...users: number[]): Promise<Buffer> {
    const store = await this.open();
    await keysOf(
      store,
      users.map((n) => owner(n)),
    );
    await store.close();
    return readFileSync(this.file);
  }

  /** Destroys the keys of these users. @returns the file then */
  async destroy(...users: number[]): Promise<Buffer> {
    const store = await this.open();
    for (const n of users) await store.destroy(subject(`user-${n}`));
    await store.close();
    return readFileSync(this.file);
  }

  async catchUp(): Promise<number> {
    return KeyStore.catchUp(this.path, MASTER, (await this.proof()).ledger);
  }
}

/** What the keys on disk are to somebody who opens the store now. */
export async function ringOf(path: string, master = MASTER): Promise<KeyRing> {
  return await KeyStore.read(path, master);
}

/** Keys that are not lent when it resolves. */
export function keysOf(store: KeyStore, owners: readonly Ownership[]): Promise<readonly OwnedKey[]> {
  return store.lend(owners, (keys) => Promise.resolve(keys));
}

/** A mark over a key, as somebody makes it who has the disk: with every checksum right. */
export function forgedMark(id: Buffer): Buffer {
  const slot = Buffer.alloc(128);
  Buffer.concat([Buffer.of(2, 0, 0, 0), id, Buffer.of(1, 0, 0, 0, 0, 0, 0, 0), randomBytes(32)]).copy(slot);
  return checked(slot);
}

/** The same slot or header, with its checksum right. */
export function checked(slot: Buffer): Buffer {
  slot.writeUInt32LE(crc32(slot.subarray(0, 124)), 124);
  return slot;
}
