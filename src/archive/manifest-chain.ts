import { chainPrefix, parseSegmentKey, segmentKey, type Segment } from './segments.ts';
import { formatManifestLine, partsOf, type NewManifestLine } from '../core/archive-manifest.ts';
import { messageOf, MillraceError } from '../core/errors.ts';
import type { ManifestHead, OpenProof, Proof } from '../core/proof.ts';
import { StorageError } from '../core/storage.ts';
import { CHAIN_START, hashLine, type ChainTip } from '../lib/chained-log.ts';
import { Serial } from '../lib/serial.ts';
import { ChainSegments, type SegmentsOptions, type StoredSegment } from './chain-segments.ts';
import { KeptSegments, type Pending } from './kept-segments.ts';
import { headNoted } from './manifest-writer.ts';

/** Most lines of one segment; one call may add more. */
const MOST_LINES = 1000;
/** Number of smaller segments at the chain's end that are joined into one. */
const JOIN_AT = 100;

export interface ChainOptions extends SegmentsOptions {
  readonly proof?: OpenProof | undefined;
  /** Folder that keeps each segment from before it is put, to recognise it after a kill; null for a writer without a disk. */
  readonly folder: string | null;
  /** Other processes use this chain too: when one of them was first, `append` throws archive_in_use and adds nothing. */
  readonly shared?: boolean;
}

/** Lines that are written together. */
interface LineGroup {
  readonly lines: NewManifestLine[];
  readonly written: Promise<void>;
}

/**
 * Writes one writer's chain of a manifest in a store. Lines that arrive while a segment is put share the next one.
 *
 * A failed put may have taken effect: its segment stays pending and is put again, byte for byte, before any other. So
 * a line that is added again, for the same file, is never written twice.
 */
export class ManifestChain {
  readonly #options: ChainOptions;
  #tip: ChainTip = CHAIN_START;
  /** Size of all segments. */
  #bytes = 0;
  /** The last segments, each with fewer lines than MOST_LINES. */
  #small: StoredSegment[] = [];
  #joinAt = JOIN_AT;
  #lost: ManifestHead | null = null;
  #pending: Pending | null = null;
  /** Files whose lines a seemingly failed put has written. */
  readonly #written = new Set<string>();
  readonly #kept: KeptSegments | null;
  readonly #segments: ChainSegments;
  readonly #serial = new Serial();
  /** The next group; null when none waits. */
  #group: LineGroup | null = null;

  constructor(options: ChainOptions) {
    this.#options = options;
    this.#kept = options.folder === null ? null : new KeptSegments(options.folder, options.writer);
    this.#segments = new ChainSegments(options);
  }

  /** Key of the chain's noted head. */
  get root(): string {
    return `${this.#options.store.url}/${chainPrefix(this.#options.writer).slice(0, -1)}`;
  }

  /**
   * Finds the end of the chain, and completes what a kill has interrupted.
   * @returns the files whose lines a killed process was adding: they are in the manifest now
   * @throws StorageError, or the system's error
   */
  async open(): Promise<ReadonlySet<string>> {
    const chain = await this.#find();
    await this.#refuseLate(chain);
    const newest = chain.at(-1);
    // A kill can come between put and note.
    if (newest !== undefined) await this.#kept?.note(newest.key);
    await this.#findLostHead(chain);
    const left = (await this.#kept?.left()) ?? [];
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
   * Adds lines; they are in the store once it resolves. After a failure they may be there or not: add them again.
   * @throws StorageError, or the system's error
   */
  append(lines: readonly NewManifestLine[]): Promise<void> {
    if ((this.#group?.lines.length ?? 0) + lines.length > MOST_LINES) this.#group = null;
    this.#group ??= this.#nextGroup();
    this.#group.lines.push(...lines);
    return this.#group.written;
  }

  /** Deletes the kept segment of a file once no line of it can be added again. */
  async forget(file: string): Promise<void> {
    await this.#kept?.forget(file);
  }

  #nextGroup(): LineGroup {
    const lines: NewManifestLine[] = [];
    const written = this.#serial.run(async () => {
      if (this.#group === group) this.#group = null;
      await this.#add(lines);
    });
    const group = { lines, written };
    void written.catch(() => undefined).then(() => this.#serial.run(() => this.#join()));
    return group;
  }

  async #add(lines: readonly NewManifestLine[]): Promise<void> {
    const proof = await this.#options.proof?.();
    for (;;) {
      await this.#settle();
      const due = lines.filter(({ file }) => !this.#written.has(file));
      if (due.length === 0) break;
      const pending = this.#segmentOf(due, proof);
      // A segment that was put and not kept would be written again after a kill.
      await this.#kept?.keep(pending);
      this.#pending = pending;
      if (await this.#settle()) break;
      if (this.#options.shared === true)
        throw new MillraceError(
          'archive_in_use',
          `${this.#options.store.url}: another process has written to the same chain of its manifest; run the command again`,
        );
      // Another process has used a copy of this writer's folder: continue after its lines.
    }
    for (const { file } of lines) this.#written.delete(file);
  }

  /** Puts the pending segment. @returns false when other lines are there, and it was not written */
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
    await this.#kept?.note(key);
    await this.#note(await this.#options.proof?.());
    return true;
  }

  /**
   * Fails when the listing does not show the newest segment yet. The next segment could have another key than that one:
   * the store would accept it, and the chain would have two ends.
   */
  async #refuseLate(chain: readonly Segment[]): Promise<void> {
    const { store, signal } = this.#options;
    const key = this.#kept?.noted() ?? null;
    const newest = key === null ? null : parseSegmentKey(key);
    if (key === null || newest === null) return;
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
    // The name of a joined segment says which lines it has: none may be missing.
    const gap = chain.findLastIndex(({ first }, at) => first !== (chain[at - 1]?.last ?? 0) + 1);
    this.#small = chain.slice(Math.max(large + 1, gap));
    return chain;
  }

  /** Reports a noted head that the chain no longer holds. */
  async #findLostHead(chain: readonly StoredSegment[]): Promise<void> {
    const { log, proof } = this.#options;
    const noted = headNoted(await proof?.(), this.root, log);
    if (noted === null || noted.head === this.#tip.hash) return;
    // Segments after it may have been put without a note, because of a kill or a failure.
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

  /** Replaces many small segments by one. Never rejects: the next call tries again. */
  async #join(): Promise<void> {
    const { store, writer, signal, log } = this.#options;
    const small = this.#small;
    const [first] = small;
    const last = small.at(-1);
    if (small.length < this.#joinAt || first === undefined || last === undefined || this.#group !== null)
      return;
    try {
      const bytes = Buffer.concat(await Promise.all(small.map((segment) => this.#segments.read(segment))));
      const segment = { writer, first: first.first, last: last.last };
      const key = segmentKey(segment);
      const { status } = await store.putIfAbsent(key, { bytes }, signal);
      if (status === 'taken') throw new Error(`${key} holds other lines`);
      const joined = { ...segment, key, bytes: bytes.length };
      this.#small = joined.last - joined.first + 1 >= MOST_LINES ? [] : [joined];
      this.#joinAt = JOIN_AT;
      await this.#kept?.note(key);
      for (const { key: each } of small) await store.delete(each, undefined, signal);
    } catch (error) {
      this.#joinAt = this.#small.length + JOIN_AT;
      log.warn({ chain: this.root, error: messageOf(error) }, 'objects of the manifest could not be joined');
    }
  }
}
