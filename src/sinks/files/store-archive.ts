import { randomBytes } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isOfSegments } from '../../archive/kept-segments.ts';
import { ManifestChain } from '../../archive/manifest-chain.ts';
import { COMPRESSIONS, type Compression } from '../../core/compression.ts';
import { messageOf } from '../../core/errors.ts';
import type { JournalEvent } from '../../core/event.ts';
import {
  DELIVERED,
  type ClaimCheck,
  type SendResult,
  type SinkContext,
  type SinkTrouble,
} from '../../core/sink.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { syncFolder } from '../../lib/durable.ts';
import { formatBytes } from '../../lib/units.ts';
import { lineOf, NOT_REMOVED } from './finish.ts';
import { type Facts, factsIfOf, FinishedFiles, isThere, stemOf } from './finished-files.ts';
import type { ArchiveFolder } from './open-folder.ts';
import { keepInStore } from './keep.ts';
import { finishedPlace, type Part, type PartCare, type PartPlace } from './part.ts';
import { sentPath } from './recover.ts';
import { SentParts } from './sent-parts.ts';
import type { Finishing, FinishStep, RecoveredPart, Recovery, Target } from './archive.ts';
import { FolderTroubles } from './troubles.ts';

export interface StoreTargetOptions {
  readonly url: string;
  readonly open: () => Promise<ObjectStore>;
  readonly compression: Compression;
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
  readonly #files: FinishedFiles;
  /** Parts whose records are not in their place; also one that was lost, until they are in another. */
  readonly #held = new Set<Part>();
  #opened: Opened | null = null;
  #leftListed: ReadonlySet<string> = new Set();

  constructor(options: StoreTargetOptions) {
    this.#options = options;
    this.name = options.url;
    this.care = { syncs: false, hashes: options.compression === 'none' };
    const { clock, log } = options.context;
    this.#troubles = new FolderTroubles(clock);
    this.#sent = new SentParts(clock, log);
    this.#files = new FinishedFiles(log);
  }

  nameOf(file: string): string {
    return `${this.name}/${file}`;
  }

  async take({ root, writers }: ArchiveFolder): Promise<Recovery> {
    const known = this.#opened?.store;
    const store = known ?? (await this.#openStore());
    const { name, proof } = this.#options.context;
    try {
      await (await proof?.())?.heads.noteWriter(store.url, { sink: name, spool: root });
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
      stemOf,
      clear: (place) => this.#files.clear(place),
      isOwn: isOfSegments,
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
    const compression = part.compression ?? this.#options.compression;
    onStep('sealed');
    const { file, ...written } = await this.#files.make(part, compression, signal);
    onStep('written');
    const { name, ...there } = await this.#put(part, compression, { file, ...written }, signal);
    onStep('put');
    await chain.append([lineOf(part, name, there)]);
    onStep('listed');
    // Not a failure: what is listed is finished, and a kill before this only lists it once more.
    try {
      await this.#endPart(part);
      await chain.forget(name);
    } catch (error) {
      context.log.warn({ file: name, error: messageOf(error) }, NOT_REMOVED);
      onLeft(part, async () => {
        await this.#endPart(part);
        this.#sent.add(sentPath(part.place), new Set(this.#held));
      });
    }
    onStep('removed');
    return name;
  }

  finished(part: Part): void {
    const state = this.#stateOf(part);
    state.answer = DELIVERED;
    state.until.resolve();
    this.#held.delete(part);
    this.#sent.confirmed(part);
    this.#sent.add(sentPath(part.place), new Set(this.#held));
  }

  answer(part: Part): SendResult | null {
    return this.#stateOf(part).answer;
  }

  full(waiting: number): string | null {
    return waiting < this.#options.mostWaiting
      ? null
      : `${formatBytes(waiting)} wait for ${this.name}; nothing more is taken until it takes them`;
  }

  async lost(part: Part, why: string): Promise<void> {
    const state = this.#stateOf(part);
    state.answer = null;
    this.#sent.lost(part, () => {
      this.#held.delete(part);
      return this.#held;
    });
    const { path, stats } = part;
    const reason = `${path} disappeared: ${why}`;
    const detail = `${reason}; its ${stats.records} records are sent again from the journal`;
    this.#troubles.happened('spool_lost', detail);
    this.#options.context.log.error(
      { path, records: stats.records, why },
      'an unfinished archive file disappeared',
    );
    state.until.reject(new Error(reason));
    await this.#files
      .clear(part.place)
      .catch((error: unknown) =>
        this.#options.context.log.warn({ path, error: messageOf(error) }, NOT_REMOVED),
      );
  }

  keep(event: JournalEvent): Promise<ClaimCheck> {
    const { store, chain } = this.#get();
    const { signal } = this.#abort;
    return keepInStore(store, event, this.#options.compression !== 'none', { chain, signal });
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

  /** @returns the name that it has now, and what is there */
  async #put(
    part: Part,
    compression: Compression,
    { file, bytes, sha256 }: Facts & { readonly file: string },
    signal: AbortSignal,
  ): Promise<Facts & { readonly name: string }> {
    const { store } = this.#get();
    const either = AbortSignal.any([signal, this.#abort.signal]);
    let name = part.finishedName(compression);
    while ((await store.putIfAbsent(name, { file, size: bytes, sha256 }, either)).status === 'taken') {
      const own = await factsIfOf(part, store, name, either);
      if (own !== null) return { name, ...own };
      // A copy of our folder has been written on, on another machine or from a backup: that one has other records.
      this.#options.context.log.error(
        { file: name },
        'another file has this name in the store; using another name',
      );
      const stem = `${part.place.stem}-${randomBytes(6).toString('hex')}`;
      name = finishedPlace({ ...part.place, stem }, compression).name;
    }
    return { name, bytes, sha256 };
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
  async #finishedAs(place: PartPlace, listed: ReadonlySet<string>): Promise<Compression | null> {
    for (const compression of COMPRESSIONS) {
      const { name, path } = finishedPlace(place, compression);
      if (listed.has(name) || (await isThere(path))) return compression;
    }
    return null;
  }

  async #endPart(part: Part): Promise<void> {
    // In this order: beside a part that is sent on, nothing would ask for it any more.
    await this.#files.remove(part.place);
    await rename(part.path, sentPath(part.place));
    await syncFolder(dirname(part.path));
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
