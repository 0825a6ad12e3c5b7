import { createHash } from 'node:crypto';
import { chainOf, chainPrefix, parseSegmentKey, segmentKey } from '../core/archive-segments.ts';
import { formatManifestLine, type NewManifestLine } from '../core/archive-manifest.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { OpenProof, Proof } from '../core/proof.ts';
import type { SinkLog } from '../core/sink.ts';
import type { ObjectStore } from '../core/storage.ts';
import { hashLine } from '../lib/chained-log.ts';
import { cutLines } from '../lib/lines.ts';

/** Objects of the chain from which on they are put into one. */
const MANY = 32;
/** Times that a line is tried again because another process has used its number. */
const TRIES = 20;

/** Where a chain ends. */
interface End {
  /** Number of the last line. */
  readonly number: number;
  readonly head: string;
  /** Of all its lines, with their line breaks. */
  readonly bytes: number;
}

/**
 * The chain of manifest lines of an erasure or a repair, in an archive in a store. Two processes of one name make one chain:
 * each line is an object that is not there yet.
 */
export class StoreChain {
  readonly #store: ObjectStore;
  readonly #writer: string;
  readonly #proof: Proof | undefined;
  readonly #log: SinkLog;
  #end: End | null = null;

  private constructor(store: ObjectStore, writer: string, proof: Proof | undefined, log: SinkLog) {
    this.#store = store;
    this.#writer = writer;
    this.#proof = proof;
    this.#log = log;
  }

  /**
   * The chain of this installation, which is told by its key.
   * @param proof absent: lines are not signed, and heads not noted
   */
  static async of(store: ObjectStore, log: SinkLog, openProof?: OpenProof): Promise<StoreChain> {
    const proof = await openProof?.();
    const key = proof?.signer.publicKey ?? '';
    const writer = createHash('sha256').update(`maintenance ${key}`).digest('hex').slice(0, 12);
    return new StoreChain(store, writer, proof, log);
  }

  /** Adds a line. Durable once it resolves. */
  async append(entry: NewManifestLine): Promise<void> {
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const end = (this.#end ??= await this.#read());
      const number = end.number + 1;
      const text = formatManifestLine(entry, end.head, this.#proof?.signer);
      const bytes = Buffer.from(`${text}\n`);
      const key = segmentKey({ writer: this.#writer, first: number, last: number });
      const { status } = await this.#store.putIfAbsent(key, { bytes });
      this.#end = status === 'written' ? { number, head: hashLine(text), bytes: end.bytes + bytes.length } : null;
      if (this.#end !== null) return await this.#note(this.#end);
    }
    const name = `${this.#store.url}/${chainPrefix(this.#writer)}`;
    throw new MillraceError('archive_in_use', `${name} is being written by others faster than it can be continued`);
  }

  /** Puts the lines of many objects into one. */
  async compact(): Promise<void> {
    const { chain, contained, gaps } = chainOf(await this.#segments());
    const last = chain.at(-1)?.last ?? 0;
    const small = [...contained, ...(chain.length >= MANY && gaps.length === 0 ? chain : [])];
    if (small.length > contained.length) {
      const pieces: Buffer[] = [];
      for (const segment of chain)
        for await (const chunk of this.#store.get(segmentKey(segment))) pieces.push(chunk);
      const key = segmentKey({ writer: this.#writer, first: 1, last });
      const { status } = await this.#store.putIfAbsent(key, { bytes: Buffer.concat(pieces) });
      if (status === 'taken') return;
    }
    for (const segment of small)
      if (segment.first !== 1 || segment.last !== last) await this.#store.delete(segmentKey(segment));
  }

  async #segments(): Promise<NonNullable<ReturnType<typeof parseSegmentKey>>[]> {
    const segments = [];
    for await (const { key } of this.#store.list(chainPrefix(this.#writer))) {
      const segment = parseSegmentKey(key);
      if (segment !== null) segments.push(segment);
    }
    return segments;
  }

  async #read(): Promise<End> {
    const { chain } = chainOf(await this.#segments());
    const noted = this.#proof?.heads.of(this.#root) ?? null;
    let [head, bytes, isHeld] = [hashLine(''), 0, noted === null];
    for (const segment of chain) {
      for await (const lines of cutLines(this.#store.get(segmentKey(segment)))) {
        for (const { bytes: line } of lines) {
          head = hashLine(line ?? '');
          bytes += (line?.length ?? 0) + 1;
          isHeld ||= head === noted?.head;
        }
      }
    }
    if (!isHeld && noted !== null) await this.#noteLost(noted, { head, bytes });
    return { number: chain.at(-1)?.last ?? 0, head, bytes };
  }

  async #noteLost(lost: { head: string; bytes: number }, now: { head: string; bytes: number }): Promise<void> {
    const said = 'the manifest does not hold its noted head: objects of it were removed or changed';
    this.#log.error({ file: this.#root, head: lost.head }, said);
    await this.#proof?.heads.note(this.#root, now, lost);
  }

  /** A crash before this leaves the head before, which the chain holds as well. */
  async #note({ head, bytes }: End): Promise<void> {
    try {
      await this.#proof?.heads.note(this.#root, { head, bytes }, null);
    } catch (error) {
      const said = 'the head of the manifest could not be noted';
      this.#log.warn({ file: this.#root, error: messageOf(error) }, said);
    }
  }

  get #root(): string {
    return `${this.#store.url}/${chainPrefix(this.#writer).slice(0, -1)}`;
  }
}
