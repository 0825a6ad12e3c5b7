import { randomBytes } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { ManifestChain, type ChainOptions } from '../../archive/manifest-chain.ts';
import type { NewManifestLine } from '../../core/archive-manifest.ts';
import type { Compression } from '../../core/compression.ts';
import type { JournalEvent } from '../../core/event.ts';
import { readWhole } from '../../core/objects.ts';
import type { SinkContext } from '../../core/sink.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { ignoreMissing } from '../../lib/durable.ts';
import type { Archive, ArchivedFile, FinishedFile } from './archive.ts';
import { factsOfSame, FinishedFiles, isThere } from './finished-files.ts';
import type { OpenFolder } from './writer-folders.ts';
import { fileOf, pathBeside, sentPath, syncFolderOf, type Part, type PartName } from './part.ts';

/** A writer of the manifest, and its folder if that outlives the process. */
type ChainWriter = Pick<ChainOptions, 'writer' | 'folder'>;

interface Opened {
  readonly store: ObjectStore;
  /** New lines go here: the first of `chains`. */
  readonly own: ManifestChain;
  /** One for each writer's folder. */
  readonly chains: readonly ManifestChain[];
  /** Files that a killed process was listing: their lines are in the manifest now. */
  readonly leftListed: ReadonlySet<string>;
}

/**
 * An archive in an object store. Its parts are in a spool, a folder of this machine: a finished file is written beside its part, so
 * that each retry puts the same bytes. A part that has ended is renamed to `.sent`.
 */
export class ObjectArchive implements Archive {
  readonly name: string;
  readonly #context: SinkContext;
  readonly #signal: AbortSignal;
  readonly #files: FinishedFiles;
  #state: Opened | null = null;

  /** @param signal ends what is on its way to the store */
  constructor(url: string, context: SinkContext, signal: AbortSignal) {
    this.name = url;
    this.#context = context;
    this.#signal = signal;
    this.#files = new FinishedFiles(context.log);
  }

  open({ root, writers }: OpenFolder): Promise<void> {
    return this.#open(
      writers.map(({ path }) => ({ writer: basename(path), folder: path })),
      { spool: root },
      this.#signal,
    );
  }

  /** For a writer without a spool: its chain ends with the process. */
  openWithoutSpool(signal: AbortSignal): Promise<void> {
    return this.#open([{ writer: randomBytes(6).toString('hex'), folder: null }], {}, signal);
  }

  /** @throws Error while it is not open */
  get store(): ObjectStore {
    return this.#opened.store;
  }

  nameOf(file: string): string {
    return `${this.name}/${file}`;
  }

  async hasFinished(part: PartName, compression: Compression): Promise<boolean> {
    const isListed = this.#opened.leftListed.has(fileOf(part, compression));
    return isListed || (await isThere(pathBeside(part, compression)));
  }

  async listed(files: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    return files.intersection(this.#opened.leftListed);
  }

  async recovered(): Promise<void> {
    for (const file of this.#opened.leftListed) await this.forget(file);
    this.#state = { ...this.#opened, leftListed: new Set() };
  }

  write(part: Part, compression: Compression, signal: AbortSignal): Promise<FinishedFile> {
    return this.#files.write(part, compression, signal);
  }

  async put(
    part: Part,
    compression: Compression,
    { path, bytes, sha256 }: FinishedFile,
    signal: AbortSignal,
  ): Promise<ArchivedFile> {
    const { store } = this;
    const { log } = this.#context;
    let file = fileOf(part.name, compression);
    while ((await store.putIfAbsent(file, { file: path, size: bytes, sha256 }, signal)).status === 'taken') {
      const same = await factsOfSame(part, store, file, signal);
      if (same !== null) return { file, ...same };
      // A copy of the spool, from a backup or on another machine, has put other records under this name.
      log.error({ file }, 'another file has this name in the store; using another name');
      const stem = `${part.name.stem}-${randomBytes(6).toString('hex')}`;
      file = fileOf({ ...part.name, stem }, compression);
    }
    return { file, bytes, sha256 };
  }

  async list(lines: readonly NewManifestLine[]): Promise<void> {
    await this.#opened.own.append(lines);
  }

  async end(part: Part): Promise<void> {
    // In this order: nothing looks for a file beside a part that is sent.
    await this.#files.remove(part.name);
    await rename(part.path, sentPath(part.name)).catch(ignoreMissing);
    await syncFolderOf(part.path);
  }

  async forget(file: string): Promise<void> {
    for (const chain of this.#opened.chains) await chain.forget(file);
  }

  async clear(part: PartName): Promise<void> {
    await this.#files.remove(part);
    await syncFolderOf(pathBeside(part, 'none'));
  }

  async putEvent(file: string, content: Buffer, event: JournalEvent): Promise<Buffer> {
    const { status } = await this.store.putIfAbsent(file, { bytes: content }, this.#signal);
    if (status === 'written') return content;
    const found = await readWhole(this.store, file, this.#signal);
    const body = file.endsWith('.gz') ? await promisify(gunzip)(found) : found;
    if (body.equals(event.body)) return found;
    throw new Error(`${this.nameOf(file)} is another event's; it is not overwritten`);
  }

  async close(): Promise<void> {
    const opened = this.#state;
    this.#state = null;
    await opened?.store.close();
  }

  async #open(
    writers: readonly ChainWriter[],
    noted: { readonly spool?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { name: sink, log, proof } = this.#context;
    const known = this.#state?.store;
    const store = known ?? (await this.#openStore(signal));
    try {
      await (await proof?.())?.heads.noteWriter(store.url, { sink, ...noted });
      const chains: ManifestChain[] = [];
      const leftListed = new Set<string>();
      for (const writer of writers) {
        const chain = new ManifestChain({ store, ...writer, log, proof, signal: this.#signal });
        for (const file of await chain.open()) leftListed.add(file);
        chains.push(chain);
      }
      const [own] = chains;
      if (own === undefined) throw new Error(`${this.name} has no folder for open files`);
      this.#state = { store, own, chains, leftListed };
    } catch (error) {
      if (known === undefined) await store.close();
      throw error;
    }
  }

  async #openStore(signal: AbortSignal): Promise<ObjectStore> {
    const { openStore } = this.#context;
    if (openStore === undefined) throw new Error(`${this.name}: no object store can be used here`);
    const store = await openStore(this.name);
    try {
      await store.probe(signal);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  get #opened(): Opened {
    if (this.#state === null) throw new Error(`${this.name} is not open`);
    return this.#state;
  }
}
