import { createHash, randomBytes } from 'node:crypto';
import { link, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileChunks } from '../../archive/file-lines.ts';
import { isPendingSegment } from '../../archive/kept-segments.ts';
import { ManifestChain } from '../../archive/manifest-chain.ts';
import { DISK } from '../../archive/place.ts';
import { DATA_EXTENSIONS, FILE_FORMS, type FileForm, type FileFormat } from '../../core/archive.ts';
import { messageOf } from '../../core/errors.ts';
import type { JournalEvent } from '../../core/event.ts';
import {
  DELIVERED,
  type ClaimCheck,
  type SendResult,
  type SinkContext,
  type SinkTrouble,
} from '../../core/sink.ts';
import type { ObjectBody, ObjectStore } from '../../core/storage.ts';
import { isMissing, readPlain, syncFolder } from '../../lib/durable.ts';
import { formatBytes } from '../../lib/units.ts';
import { compress, recordsOf } from './compress.ts';
import { formatFor, lineOf } from './finish.ts';
import type { ArchiveFolder } from './folder.ts';
import { keepInStore } from './keep.ts';
import type { Part, PartCare, PartPlace } from './part.ts';
import { sentPath } from './recover.ts';
import { SentParts } from './sent-parts.ts';
import type { Finishing, FinishStep, RecoveredPart, Recovery, Target } from './target.ts';
import { FolderTroubles } from './troubles.ts';

export interface StoreTargetOptions {
  readonly url: string;
  readonly open: () => Promise<ObjectStore>;
  readonly format: FileFormat;
  readonly context: SinkContext;
  /** Bytes of sealed parts, not compressed, above which nothing more is taken. */
  readonly mostWaiting: number;
  readonly onStep: (step: FinishStep) => void;
}

/** What of one opening of the store: the chain of the folder that new parts are in goes on, the others only end. */
interface Opened {
  readonly store: ObjectStore;
  readonly chain: ManifestChain;
}

/** `held` → `confirmed`, or → `lost`. */
interface State {
  readonly until: PromiseWithResolvers<void>;
  answer: SendResult | null;
}

/**
 * The archive lies in a store; the folder is where parts wait until they are large or old enough for an object. What is in one
 * is held: it counts when its object and its line of the manifest are in the store, and is sent again when the part is lost.
 *
 * A part ends in these steps: compressed beside it (so that a retry puts the same bytes) → put → listed → renamed to `.sent`.
 * As such it stays for as long as anything older is held, because after a crash its events are sent again.
 */
export class StoreTarget implements Target {
  readonly name: string;
  readonly care: PartCare;
  readonly afterReplacement = 'What was in it is sent again from the journal.';
  readonly #options: StoreTargetOptions;
  readonly #troubles: FolderTroubles;
  readonly #sent: SentParts;
  readonly #abort = new AbortController();
  readonly #states = new WeakMap<Part, State>();
  /** Hash of the finished file that was made, or found right, beside each part. */
  readonly #compressedAs = new WeakMap<Part, string>();
  /** Parts that are neither confirmed nor lost. */
  readonly #held = new Set<Part>();
  /** Sealed parts, with what they take on the disk. */
  readonly #waiting = new Map<Part, number>();
  #opened: Opened | null = null;
  #leftListed: ReadonlySet<string> = new Set();

  constructor(options: StoreTargetOptions) {
    this.#options = options;
    this.name = options.url;
    this.care = { syncs: false, hashes: options.format.form === 'none' };
    const { clock, log } = options.context;
    this.#troubles = new FolderTroubles(clock);
    this.#sent = new SentParts(clock, log);
  }

  nameOf(file: string): string {
    return `${this.name}/${file}`;
  }

  async take({ writers }: ArchiveFolder): Promise<Recovery> {
    const known = this.#opened?.store;
    const store = known ?? (await this.#openStore());
    try {
      return await this.#takeWith(store, writers);
    } catch (error) {
      if (known === undefined) await store.close();
      throw error;
    }
  }

  async #takeWith(store: ObjectStore, writers: ArchiveFolder['writers']): Promise<Recovery> {
    const listed = new Set<string>();
    let own: ManifestChain | null = null;
    const { log, proof } = this.#options.context;
    for (const { path } of writers) {
      const { signal } = this.#abort;
      const chain = new ManifestChain({ store, writer: basename(path), log, proof, folder: path, signal });
      for (const file of await chain.open()) listed.add(file);
      own ??= chain;
    }
    if (own === null) throw new Error(`${this.name} has no folder for open files`);
    this.#opened = { store, chain: own };
    this.#leftListed = listed;
    return {
      finishedAs: (place) => this.#finishedAs(place, listed),
      listed: (names) => Promise.resolve(new Set([...names].filter((name) => listed.has(name)))),
      dispose: (part) => this.#endPart(part),
      isOwn: (name) =>
        isPendingSegment(name) || FILE_FORMS.some((each) => name.endsWith(DATA_EXTENSIONS[each])),
    };
  }

  async recovered(parts: readonly RecoveredPart[]): Promise<void> {
    for (const { part, state } of parts) if (state !== 'listed') this.#stateOf(part);
    for (const { part, state } of parts) {
      if (state !== 'listed') continue;
      this.#states.set(part, { until: Promise.withResolvers(), answer: DELIVERED });
      this.#sent.add(sentPath(part.place), new Set(this.#held));
    }
    for (const file of this.#leftListed) await this.#get().chain.forget(file);
    this.#leftListed = new Set();
  }

  async finish(part: Part, { signal, onLeft }: Finishing): Promise<string> {
    const { onStep, context } = this.#options;
    const { chain } = this.#get();
    this.#waiting.set(part, part.length);
    const format = formatFor(part, this.#options.format);
    onStep('sealed');
    const { file, ...written } = await this.#compressed(part, format, signal);
    onStep('written');
    const name = await this.#put(
      part,
      format.form,
      { file, size: written.bytes, sha256: written.sha256 },
      signal,
    );
    onStep('put');
    await chain.append([lineOf(part, name, written)]);
    onStep('listed');
    // Not a failure: what is listed is finished, and a kill before this only lists it once more.
    try {
      await this.#endPart(part);
      await chain.forget(name);
    } catch (error) {
      context.log.warn({ file: name, error: messageOf(error) }, 'part of a closed file could not be removed');
      onLeft(part);
    }
    onStep('removed');
    return name;
  }

  finished(part: Part): void {
    const state = this.#stateOf(part);
    this.#waiting.delete(part);
    state.answer = DELIVERED;
    state.until.resolve();
    this.#held.delete(part);
    this.#sent.confirmed(part);
    this.#sent.add(sentPath(part.place), new Set(this.#held));
  }

  answer(part: Part): SendResult | null {
    return this.#stateOf(part).answer;
  }

  full(): string | null {
    let bytes = 0;
    for (const length of this.#waiting.values()) bytes += length;
    return bytes < this.#options.mostWaiting
      ? null
      : `${formatBytes(bytes)} wait for ${this.name}; nothing more is taken until it takes them`;
  }

  lost(part: Part, why: string): Promise<void> {
    const state = this.#stateOf(part);
    this.#waiting.delete(part);
    this.#held.delete(part);
    state.answer = null;
    this.#sent.confirmed(part);
    const { path, stats } = part;
    const reason = `${path} disappeared: ${why}`;
    const detail = `${reason}; its ${stats.records} records are sent again from the journal`;
    this.#troubles.happened('spool_lost', detail);
    this.#options.context.log.error(
      { path, records: stats.records, why },
      'an unfinished archive file disappeared',
    );
    state.until.reject(new Error(reason));
    return Promise.resolve();
  }

  keep(event: JournalEvent): Promise<ClaimCheck> {
    const { store, chain } = this.#get();
    const { signal } = this.#abort;
    return keepInStore(store, event, this.#options.format.compress !== 'none', { chain, signal });
  }

  settle(holds: (path: string) => Promise<boolean>): Promise<void> {
    return this.#sent.remove(holds);
  }

  look(): Promise<void> {
    return Promise.resolve();
  }

  troubles(): readonly SinkTrouble[] {
    return this.#troubles.list();
  }

  async close(): Promise<void> {
    this.#abort.abort();
    this.#sent.stop();
    const opened = this.#opened;
    this.#opened = null;
    await opened?.store.close();
  }

  /** The part's finished file beside it, the same at each call until the part has ended. */
  async #compressed(
    part: Part,
    format: FileFormat,
    signal: AbortSignal,
  ): Promise<Facts & { readonly file: string }> {
    const file = finishedPlace(part.place, format.form).path;
    if (await isThere(file)) {
      const facts = await factsOf(readPlain(file));
      if (facts.sha256 === this.#compressedAs.get(part) || (await holdsRecords(file, part))) {
        this.#compressedAs.set(part, facts.sha256);
        return { file, ...facts };
      }
      const said = 'the compressed file does not hold the records of its part; it is made anew';
      this.#options.context.log.error({ path: file }, said);
    }
    const same = format.form === 'none' ? await linked(part, file) : null;
    if (same !== null) {
      this.#compressedAs.set(part, same.sha256);
      return { file, ...same };
    }
    const written = await compress(part, format, signal);
    signal.throwIfAborted();
    await rename(part.temporaryPath, file);
    await syncFolder(dirname(file));
    this.#compressedAs.set(part, written.sha256);
    return { file, ...written };
  }

  /** @returns the name that it has now */
  async #put(part: Part, form: FileForm, body: ObjectBody, signal: AbortSignal): Promise<string> {
    const { store } = this.#get();
    const either = AbortSignal.any([signal, this.#abort.signal]);
    let name = part.finishedName(form);
    while ((await store.putIfAbsent(name, body, either)).status === 'taken') {
      // A copy of our folder has been written on, on another machine or from a backup: that one has other records.
      this.#options.context.log.error(
        { file: name },
        'another file has this name in the store; using another name',
      );
      const stem = `${part.place.stem}-${randomBytes(6).toString('hex')}`;
      name = finishedPlace({ ...part.place, stem }, form).name;
    }
    return name;
  }

  async #openStore(): Promise<ObjectStore> {
    const store = await this.#options.open();
    try {
      await store.probe(this.#abort.signal);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** Its compressed file lies beside it, or it is listed and that is gone already. */
  async #finishedAs(place: PartPlace, listed: ReadonlySet<string>): Promise<FileForm | null> {
    for (const form of FILE_FORMS) {
      const { name, path } = finishedPlace(place, form);
      if (listed.has(name) || (await isThere(path))) return form;
    }
    return null;
  }

  async #endPart(part: Part): Promise<void> {
    await rename(part.path, sentPath(part.place));
    await syncFolder(dirname(part.path));
    for (const form of FILE_FORMS) await rm(finishedPlace(part.place, form).path, { force: true });
  }

  #stateOf(part: Part): State {
    let state = this.#states.get(part);
    if (state === undefined) {
      const until = Promise.withResolvers<void>();
      // An answer may not be waited for.
      until.promise.catch(() => undefined);
      state = { until, answer: { status: 'held', until: until.promise } };
      this.#states.set(part, state);
      this.#held.add(part);
    }
    return state;
  }

  #get(): Opened {
    if (this.#opened === null) throw new Error(`${this.name} is not open`);
    return this.#opened;
  }
}

interface Facts {
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Gives a part that is the finished file already the name of one too, instead of a copy of it.
 * @returns null when what is in the file is not known, or the file system has no such names
 */
async function linked(part: Part, file: string): Promise<Facts | null> {
  const { sha256, length: bytes, path } = part;
  // What lies beyond its length was never acknowledged.
  if (sha256 === null || (await stat(path)).size !== bytes) return null;
  try {
    await link(path, file);
  } catch (error) {
    if (isMissing(error)) throw error;
    return null;
  }
  await syncFolder(dirname(file));
  return { bytes, sha256 };
}

async function factsOf(chunks: AsyncIterable<Buffer>): Promise<Facts> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** Whether the part's records are in its finished file; one from before a crash or a restore may have been damaged since. */
async function holdsRecords(file: string, part: Part): Promise<boolean> {
  const wanted = await factsOf(recordsOf(part));
  try {
    return (await factsOf(fileChunks(DISK, file))).sha256 === wanted.sha256;
  } catch {
    return false;
  }
}

function finishedPlace(
  { openFolder, folder, stem }: PartPlace,
  form: FileForm,
): { readonly name: string; readonly path: string } {
  const file = `${stem}${DATA_EXTENSIONS[form]}`;
  return { name: folder === '' ? file : `${folder}/${file}`, path: join(openFolder, folder, file) };
}

async function isThere(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
