import { chainPrefix, parseSegmentKey, segmentKey, type Segment } from '../core/archive-segments.ts';
import { formatManifestLine, partsOf, type NewManifestLine } from '../core/archive-manifest.ts';
import { messageOf, MillraceError } from '../core/errors.ts';
import type { ManifestHead, OpenProof, Proof } from '../core/proof.ts';
import type { SinkLog } from '../core/sink.ts';
import { type ObjectStore, StorageError } from '../core/storage.ts';
import { CHAIN_START, hashLine, type ChainTip } from '../lib/chained-log.ts';
import { ChainSegments, type StoredSegment } from './chain-segments.ts';
import { KeptSegments, type Pending } from './kept-segments.ts';

/** Lines of one segment at most, but for what comes in one call. */
const MOST_LINES = 1000;
/** Segments below that are joined when there are so many at the chain's end. */
const JOIN_AT = 100;

export interface ChainOptions {
  readonly store: ObjectStore;
  /** Its lines follow each other: nobody else may write them at the same time. */
  readonly writer: string;
  readonly log: SinkLog;
  readonly proof?: OpenProof | undefined;
  /**
   * Folder that outlives the process: a segment lies there before it is put, so that after a kill one that was put is known.
   * Null for a writer that lives no longer than its process.
   */
  readonly folder: string | null;
  /** Others may write it too: what lies where the next lines were to be ends `append` with archive_in_use: what was handed in is not in it, and may not be true any more. */
  readonly shared?: boolean;
  /** Ends what is on its way to the store. */
  readonly signal: AbortSignal;
}

interface Call {
  readonly lines: readonly NewManifestLine[];
  readonly done: PromiseWithResolvers<void>;
}

/**
 * One writer's chain of a manifest in a store, for writing. Lines that are handed in while a segment is put share the next.
 *
 * A put that fails may have taken effect all the same: its segment stays `pending`, and is put again, byte for byte, before
 * anything else is. So handing in a line again, for the same file, never writes it twice.
 */
export class ManifestChain {
  readonly #options: ChainOptions;
  #tip: ChainTip = CHAIN_START;
  /** Of all segments together. */
  #bytes = 0;
  /** The last ones, each below MOST_LINES. */
  #small: StoredSegment[] = [];
  #joinAt = JOIN_AT;
  #lost: ManifestHead | null = null;
  #pending: Pending | null = null;
  /** Files whose lines were written by a put that had seemed to fail. */
  readonly #written = new Set<string>();
  readonly #kept: KeptSegments;
  readonly #segments: ChainSegments;
  #calls: Call[] = [];
  #running = false;

  constructor(options: ChainOptions) {
    this.#options = options;
    this.#kept = new KeptSegments(options.folder, options.writer);
    this.#segments = new ChainSegments(options);
  }

  /** What heads are noted by. */
  get root(): string {
    return `${this.#options.store.url}/${chainPrefix(this.#options.writer).slice(0, -1)}`;
  }

  /**
   * Finds the end of the chain, and ends what a kill has interrupted.
   * @returns the files whose lines a killed process was putting: they are in the manifest now
   * @throws StorageError, or the system's error
   */
  async open(): Promise<ReadonlySet<string>> {
    const chain = await this.#find();
    await this.#refuseLate(chain);
    const newest = chain.at(-1);
    // A kill may have come between its put and its note.
    if (newest !== undefined) await this.#kept.note(newest.key);
    await this.#findLostHead(chain);
    const left = await this.#kept.left();
    for (const pending of left) {
      if (pending.segment.first <= this.#tip.n) {
        if (await this.#segments.hold(pending)) for (const file of pending.files) this.#written.add(file);
      } else {
        this.#pending = pending;
        await this.#settle();
      }
    }
    return new Set(left.flatMap(({ files }) => files).filter((file) => this.#written.delete(file)));
  }

  /**
   * Adds lines; they are in the store once it resolves. When it rejects they may be there or not: hand them in again.
   * @throws StorageError, or the system's error
   */
  append(lines: readonly NewManifestLine[]): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#calls.push({ lines, done });
    if (!this.#running) void this.#run();
    return done.promise;
  }

  /** A kill would not write the line of a file again: what was kept of its segment for that case goes with the last of them. */
  forget(file: string): Promise<void> {
    return this.#kept.forget(file);
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#calls.length > 0) {
      const calls: Call[] = [];
      for (let lines = 0; this.#calls[0] !== undefined;) {
        lines += this.#calls[0].lines.length;
        if (calls.length > 0 && lines > MOST_LINES) break;
        calls.push(this.#calls[0]);
        this.#calls.shift();
      }
      try {
        await this.#add(calls.flatMap(({ lines }) => lines));
        for (const { done } of calls) done.resolve();
      } catch (error) {
        for (const { done } of calls) done.reject(error);
      }
    }
    this.#running = false;
    await this.#join();
  }

  async #add(lines: readonly NewManifestLine[]): Promise<void> {
    const proof = await this.#options.proof?.();
    for (;;) {
      await this.#settle();
      const due = lines.filter(({ file }) => !this.#written.has(file));
      if (due.length === 0) break;
      const pending = this.#segmentOf(due, proof);
      // One that is not kept is not put either: after a kill its lines would be written again.
      await this.#kept.keep(pending);
      this.#pending = pending;
      if (await this.#settle()) break;
      if (this.#options.shared === true)
        throw new MillraceError(
          'archive_in_use',
          `${this.#options.store.url}: another process has written to the same chain of its manifest; run the command again`,
        );
      // Somebody has written as this writer, from a copy of its folder, say: the chain goes on behind that.
    }
    for (const { file } of lines) this.#written.delete(file);
  }

  /** Puts what is pending. @returns false when other lines have its place: then it is not written */
  async #settle(): Promise<boolean> {
    const pending = this.#pending;
    if (pending === null) return true;
    const { store, signal, log } = this.#options;
    const { segment, bytes, tip, files } = pending;
    const key = segmentKey(segment);
    const { status } = await store.putIfAbsent(key, { bytes }, signal);
    this.#pending = null;
    if (status === 'taken') {
      log.error({ key }, 'other lines lie where the next ones of this writer were to be');
      await this.#find();
      if (this.#tip.n < segment.first) throw this.#late(key);
      return false;
    }
    this.#tip = tip;
    this.#bytes += bytes.length;
    this.#small.push({ ...segment, key, bytes: bytes.length });
    for (const file of files) this.#written.add(file);
    await this.#kept.note(key);
    await this.#note(await this.#options.proof?.());
    return true;
  }

  /**
   * A segment of fewer or more lines than the one that a listing does not show has another key than that: nothing would refuse it,
   * and the chain would have two ends.
   */
  async #refuseLate(chain: readonly Segment[]): Promise<void> {
    const { store, signal } = this.#options;
    const key = this.#kept.noted();
    const newest = key === null ? null : parseSegmentKey(key);
    if (key === null || newest === null) return;
    // Also one that joins others, of which a kill has left the last: the listing would show a chain that begins with those.
    if (chain.some(({ first, last }) => first <= newest.first && last >= newest.last)) return;
    if ((await store.head(key, signal)) !== null) throw this.#late(key);
  }

  #late(key: string): StorageError {
    const { url } = this.#options.store;
    return new StorageError('unreachable', `${url}/${key} is there, and the listing does not show it yet`);
  }

  #segmentOf(lines: readonly NewManifestLine[], proof: Proof | undefined): Pending {
    const parts = partsOf(proof);
    let { n, hash } = this.#tip;
    const texts = lines.map((line) => {
      const text = formatManifestLine(line, hash, parts);
      n += 1;
      hash = hashLine(text);
      return `${text}\n`;
    });
    return {
      segment: { writer: this.#options.writer, first: this.#tip.n + 1, last: n },
      bytes: Buffer.from(texts.join('')),
      tip: { n, hash },
      files: lines.map(({ file }) => file),
    };
  }

  /** @returns the segments of the chain */
  async #find(): Promise<readonly StoredSegment[]> {
    const chain = await this.#segments.list();
    const last = chain.at(-1);
    const lines = last === undefined ? [] : await this.#segments.lines(last);
    this.#tip = last === undefined ? CHAIN_START : { n: last.last, hash: hashLine(lines.at(-1) ?? '') };
    this.#bytes = chain.reduce((sum, { bytes }) => sum + bytes, 0);
    const large = chain.findLastIndex(({ first, last: to }) => to - first + 1 >= MOST_LINES);
    // What is joined has a name that says which lines are in it: none may be missing.
    const gap = chain.findLastIndex(({ first }, at) => first !== (chain[at - 1]?.last ?? 0) + 1);
    this.#small = chain.slice(Math.max(large + 1, gap));
    return chain;
  }

  /** The head that was noted last, when the chain does not hold it any more. */
  async #findLostHead(chain: readonly StoredSegment[]): Promise<void> {
    const { log, proof } = this.#options;
    const noted = (await proof?.())?.heads.of(this.root) ?? null;
    if (noted === null || noted.head === this.#tip.hash) return;
    // It need not be the end: segments were put after it whose heads a kill, or a failure, kept from being noted.
    for (const segment of chain.toReversed())
      if ((await this.#segments.lines(segment)).some((line) => hashLine(line) === noted.head)) return;
    this.#lost = noted;
    const said = 'the manifest does not hold its noted head: objects of it were removed or changed';
    log.error({ chain: this.root, head: noted.head }, said);
  }

  async #note(proof: Proof | undefined): Promise<void> {
    try {
      await proof?.heads.note(this.root, { head: this.#tip.hash, bytes: this.#bytes }, this.#lost);
      this.#lost = null;
    } catch (error) {
      const fields = { chain: this.root, error: messageOf(error) };
      this.#options.log.warn(fields, 'the head of the manifest could not be noted');
    }
  }

  /** Puts one object in place of many small ones. Never rejects: it can be done at any later time. */
  async #join(): Promise<void> {
    const { store, writer, signal, log } = this.#options;
    const small = this.#small;
    const [first] = small;
    const last = small.at(-1);
    if (small.length < this.#joinAt || first === undefined || last === undefined || this.#running) return;
    this.#running = true;
    try {
      const bytes = Buffer.concat(await Promise.all(small.map((segment) => this.#segments.read(segment))));
      const segment = { writer, first: first.first, last: last.last };
      const key = segmentKey(segment);
      const { status } = await store.putIfAbsent(key, { bytes }, signal);
      if (status === 'taken') throw new Error(`${key} holds other lines`);
      const joined = { ...segment, key, bytes: bytes.length };
      this.#small = joined.last - joined.first + 1 >= MOST_LINES ? [] : [joined];
      this.#joinAt = JOIN_AT;
      await this.#kept.note(key);
      for (const { key: each } of small) await store.delete(each, undefined, signal);
    } catch (error) {
      this.#joinAt = this.#small.length + JOIN_AT;
      log.warn({ chain: this.root, error: messageOf(error) }, 'objects of the manifest could not be joined');
    }
    this.#running = false;
    if (this.#calls.length > 0) await this.#run();
  }
}
