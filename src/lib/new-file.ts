import { createHash, randomBytes } from 'node:crypto';
import { link, rename, rm, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CREATE_NEW, errorCode, naming, openPlain, syncFolder, writeAll } from './durable.ts';

/** A file that is written once from beginning to end, under a temporary name. */
export class NewFile {
  readonly path: string;
  readonly handle: FileHandle;
  #bytes = 0;

  constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.handle = handle;
  }

  /** Makes the file, and removes an old one of that name. @throws the system's error */
  static async create<F>(
    this: new (path: string, handle: FileHandle) => F,
    path: string,
    mode?: number,
  ): Promise<F> {
    await rm(path, { force: true });
    return new this(path, await openPlain(path, CREATE_NEW, mode));
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** One call at a time. */
  async write(chunk: Buffer): Promise<void> {
    await writeAll(this.handle, chunk, this.#bytes);
    this.#bytes += chunk.length;
  }

  /** Truncates to so many bytes. */
  async cutTo(bytes: number): Promise<void> {
    await this.handle.truncate(bytes);
    this.#bytes = bytes;
  }

  /** Once it resolves, the content is on disk; `syncFolder` makes the name durable. */
  async finish(): Promise<void> {
    await this.handle.sync();
    await this.handle.close();
  }

  /** Removes the file. Never rejects. */
  async abandon(): Promise<void> {
    await this.handle.close().catch(() => undefined);
    await unlink(this.path).catch(() => undefined);
  }
}

/** A `NewFile` that hashes what it writes. */
export class HashedFile extends NewFile {
  readonly #hash = createHash('sha256');

  override write(chunk: Buffer): Promise<void> {
    this.#hash.update(chunk);
    return super.write(chunk);
  }

  override cutTo(): Promise<void> {
    return Promise.reject(new Error('hashed bytes cannot be cut off'));
  }

  /** Size and SHA-256 (lower-case hex) of the complete file. Can be called once. */
  facts(): { bytes: number; sha256: string } {
    return { bytes: this.bytes, sha256: this.#hash.digest('hex') };
  }
}

/** Has `fill` write the file, and syncs it; removes it when any of that fails. */
export async function fillNew<F extends NewFile>(
  opening: Promise<F>,
  fill: (file: F) => Promise<void>,
): Promise<F> {
  const file = await opening;
  try {
    await fill(file);
    await file.finish();
    return file;
  } catch (error) {
    await file.abandon();
    throw naming(file.path, error);
  }
}

/** Makes a file with this content, which is on disk once it resolves; `syncFolder` makes the name durable. */
export async function writeNew(path: string, content: Buffer, mode?: number): Promise<void> {
  await fillNew(NewFile.create(path, mode), (file) => file.write(content));
}

/** Suffix of files that `writeDurably` is writing. */
export const UNFINISHED = '.tmp';

/** Makes or replaces a file; durable once it resolves. A crash leaves all of the content or none. */
export async function writeDurably(
  folder: string,
  name: string,
  content: Buffer | string,
  mode?: number,
): Promise<void> {
  const temporary = join(folder, `${name}${UNFINISHED}`);
  await writeNew(temporary, Buffer.from(content), mode);
  await rename(temporary, join(folder, name));
  await syncFolder(folder);
}

/** As `writeDurably`, but keeps a file that exists already. */
export async function writeOnce(path: string, content: Buffer, mode?: number): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}${UNFINISHED}`;
  await writeNew(temporary, content, mode);
  // Two processes may do this at the same time: the first file stays.
  await link(temporary, path).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
  await unlink(temporary);
  await syncFolder(dirname(path));
}
