import { createHash, randomBytes } from 'node:crypto';
import { link, rename, rm, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CREATE_NEW, errorCode, naming, openPlain, syncFolder, writeAll } from './durable.ts';

/** A file that is written once, from its beginning to its end, under a name that is not yet its own. */
export class NewFile {
  readonly path: string;
  readonly handle: FileHandle;
  #bytes = 0;

  protected constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.handle = handle;
  }

  /** Makes it, and replaces what was left under that name. @throws the system's error */
  static async create(path: string, mode?: number): Promise<NewFile> {
    return new NewFile(path, await made(path, mode));
  }

  /** Written so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** One call at a time. */
  async write(chunk: Buffer): Promise<void> {
    await writeAll(this.handle, chunk, this.#bytes);
    this.#bytes += chunk.length;
  }

  /** Takes back what was written behind so many bytes. */
  async cutTo(bytes: number): Promise<void> {
    await this.handle.truncate(bytes);
    this.#bytes = bytes;
  }

  /** What was written is on disk once it resolves; the name is only after `syncFolder`. */
  async finish(): Promise<void> {
    await this.handle.sync();
    await this.handle.close();
  }

  /** Removes it. Never rejects. */
  async abandon(): Promise<void> {
    await this.handle.close().catch(() => undefined);
    await unlink(this.path).catch(() => undefined);
  }
}

/** The same, which hashes what it writes. */
export class HashedFile extends NewFile {
  readonly #hash = createHash('sha256');

  static override async create(path: string, mode?: number): Promise<HashedFile> {
    return new HashedFile(path, await made(path, mode));
  }

  override write(chunk: Buffer): Promise<void> {
    this.#hash.update(chunk);
    return super.write(chunk);
  }

  override cutTo(): Promise<void> {
    return Promise.reject(new Error('what was hashed cannot be taken back'));
  }

  /** Size and hash (lower-case hex), of a file that is finished; to be asked for once. */
  facts(): { bytes: number; sha256: string } {
    return { bytes: this.bytes, sha256: this.#hash.digest('hex') };
  }
}

async function made(path: string, mode?: number): Promise<FileHandle> {
  await rm(path, { force: true });
  return openPlain(path, CREATE_NEW, mode);
}

/** Lets `fill` write the file, then finishes it; removes it when anything of that fails. */
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

/** Makes a file with this content, which is on disk once it resolves; its name is only after `syncFolder`. */
export async function writeNew(path: string, content: Buffer, mode?: number): Promise<void> {
  await fillNew(NewFile.create(path, mode), (file) => file.write(content));
}

/** Ends the name of what `writeDurably` has not finished. */
export const UNFINISHED = '.tmp';

/** A file that is there whole or not at all, and replaces any other of its name; durable once it resolves. */
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

/** Makes a file that is there whole or not at all; one that is there already stays. Durable once it resolves. */
export async function writeOnce(path: string, content: Buffer, mode?: number): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}${UNFINISHED}`;
  await writeNew(temporary, content, mode);
  // Two processes can be at it: the first one's file counts.
  await link(temporary, path).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
  await unlink(temporary);
  await syncFolder(dirname(path));
}
