import { randomBytes } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ManifestWriter } from '../../archive/manifest-writer.ts';
import type { NewManifestLine } from '../../core/archive-manifest.ts';
import type { Compression } from '../../core/compression.ts';
import type { SinkContext } from '../../core/sink.ts';
import { ensureFolder, syncFolder } from '../../lib/durable.ts';
import { writeNew } from '../../lib/new-file.ts';
import type { Archive, ArchivedFile, FinishedFile } from './archive.ts';
import { compress } from './compress.ts';
import { isThere } from './finished-files.ts';
import type { OpenFolder } from './writer-folders.ts';
import { fileOf, removePart, type Part, type PartName } from './part.ts';

interface Opened {
  readonly root: string;
  readonly manifest: ManifestWriter;
}

/** An archive in a folder of this machine, which also has the open parts: a finished file is renamed to its place. */
export class FolderArchive implements Archive {
  readonly name: string;
  readonly #context: SinkContext;
  #state: Opened | null = null;

  constructor(path: string, context: SinkContext) {
    this.name = path;
    this.#context = context;
  }

  async open({ root }: OpenFolder): Promise<void> {
    const { name, log, proof } = this.#context;
    const manifest = new ManifestWriter(root, log, proof);
    await manifest.repair(name);
    this.#state = { root, manifest };
  }

  nameOf(file: string): string {
    return join(this.#opened.root, file);
  }

  hasFinished(part: PartName, compression: Compression): Promise<boolean> {
    return isThere(this.nameOf(fileOf(part, compression)));
  }

  listed(files: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    return this.#opened.manifest.listed(files);
  }

  async recovered(): Promise<void> {}

  async write(part: Part, compression: Compression, signal: AbortSignal): Promise<FinishedFile> {
    return { path: part.temporaryPath, ...(await compress(part, compression, signal)) };
  }

  async put(part: Part, compression: Compression, { path, ...facts }: FinishedFile): Promise<ArchivedFile> {
    const file = fileOf(part.name, compression);
    await this.#move(path, await this.#folderFor(file), file);
    return { file, ...facts };
  }

  async list(lines: readonly NewManifestLine[]): Promise<void> {
    for (const line of lines) await this.#opened.manifest.append(line);
  }

  end(part: Part): Promise<void> {
    return removePart(part);
  }

  async forget(): Promise<void> {}

  async clear(): Promise<void> {}

  async putEvent(file: string, content: Buffer): Promise<Buffer> {
    const folder = await this.#folderFor(file);
    const temporary = join(folder, `.${randomBytes(6).toString('hex')}.tmp`);
    await writeNew(temporary, content);
    await this.#move(temporary, folder, file);
    return content;
  }

  async close(): Promise<void> {}

  /** Made if missing. */
  #folderFor(file: string): Promise<string> {
    return ensureFolder(this.#opened.root, file.split('/').slice(0, -1).join('/'));
  }

  async #move(path: string, folder: string, file: string): Promise<void> {
    await rename(path, this.nameOf(file));
    await syncFolder(folder);
  }

  get #opened(): Opened {
    if (this.#state === null) throw new Error(`${this.name} is not open`);
    return this.#state;
  }
}
