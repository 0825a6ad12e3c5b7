import { hash } from 'node:crypto';
import { dirname } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { checkSigned, signJson, type Checked, type SignedKind, type Signer } from '../../core/signature.ts';
import { makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { lockInTurn } from '../../lib/file-lock.ts';
import { appendLines, readJsonLines } from '../../lib/json-lines.ts';
import { writeDurably } from '../../lib/new-file.ts';

/** Milliseconds to wait for other processes that write a line. */
const PATIENCE = 10_000;

/** The object in a file; `forged` when it is not as it was signed, or the key is not trusted; null without a file. */
export type Signed<T extends object> = T | 'forged' | null;

/** A line of a file of JSON lines, and what its signature proves. */
export interface SignedLine<T> {
  readonly value: T;
  readonly signature: Checked;
  /** True when the signature is valid and its key is trusted. */
  readonly isTrusted: boolean;
}

/** Writes and reads signed JSON: files of one object, and files of lines. */
export class SignedFiles {
  readonly #signer: Signer | null;
  readonly #trusted: ReadonlySet<string>;

  /**
   * @param signer null for reading only
   * @param trusted public keys whose signatures count
   */
  constructor(signer: Signer | null, trusted: ReadonlySet<string>) {
    this.#signer = signer;
    this.#trusted = trusted;
  }

  /** @throws MillraceError proof_unusable */
  read<T extends object>(kind: SignedKind, path: string): Signed<T> {
    const text = reading(path, () => readIfThere(path)?.trimEnd());
    if (text === undefined) return null;
    return this.#isTrusted(checkSigned(kind, text)) ? (JSON.parse(text) as T) : 'forged';
  }

  /** Replaces the object in a file; durable once it resolves. @throws MillraceError proof_unusable */
  async write(kind: SignedKind, folder: string, name: string, value: object): Promise<void> {
    const text = signJson(kind, JSON.stringify(value), this.#ownSigner(folder));
    makeFolder(folder, 0o700);
    await writeDurably(folder, name, `${text}\n`, OWNER_ONLY);
  }

  /** Lines of a file; none when there is no file. @throws MillraceError proof_unusable */
  lines<T extends object>(kind: SignedKind, path: string): SignedLine<T>[] {
    return reading(path, () => readJsonLines<T>(path)).map((value) => {
      const signature = checkSigned(kind, JSON.stringify(value));
      return { value, signature, isTrusted: this.#isTrusted(signature) };
    });
  }

  /** Adds lines, one process at a time; durable once it resolves. @throws MillraceError proof_unusable */
  async append(kind: SignedKind, path: string, values: readonly object[]): Promise<void> {
    const signer = this.#ownSigner(path);
    const lines = values.map((value) => signJson(kind, JSON.stringify(value), signer));
    makeFolder(dirname(path), 0o700);
    const lock = await lockInTurn(`${path}.lock`, PATIENCE);
    await appendLines(path, lines).finally(() => lock.release());
  }

  #isTrusted({ state, by }: Checked): boolean {
    return state === 'valid' && this.#trusted.has(by);
  }

  #ownSigner(path: string): Signer {
    if (this.#signer !== null) return this.#signer;
    throw new MillraceError('proof_unusable', `${path}: there is no key to sign with`);
  }
}

/** Does what reads a path. @throws MillraceError proof_unusable when it cannot be read */
export function reading<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new MillraceError('proof_unusable', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Name of the file about a folder or URL. */
export function fileNameFor(place: string): string {
  return `${hash('sha256', place, 'hex').slice(0, 16)}.json`;
}
