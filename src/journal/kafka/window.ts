import type { Event } from '../../core/event.ts';
import type { SinkLog } from '../../core/sink.ts';
import type { Cluster, Read } from './cluster.ts';
import { FINGERPRINT_BYTES, fingerprintOf, Ids, type IdAt, type Verdict } from './id-table.ts';
import { keptOf, type Extra, type Kept } from './record.ts';

/** Records of `topic` whose ids lie together in one record of `windowTopic`. */
export const CHUNK = 4096;
/** Of one id: fingerprint, second, offset within the chunk. */
const ENTRY = FINGERPRINT_BYTES + 4 + 4;
/** Of the record of a chunk, at most: what is released from quarantine has two ids. */
export const MOST_CHUNK_BYTES = CHUNK * ENTRY * 2 + 1024;
const SECOND = 1000;
/** Records can be older than the time their writer gave them: by so much, milliseconds. */
const SLACK = 60_000;
const PROGRESS_EVERY = 2000;

export interface WindowOptions {
  readonly topic: string;
  readonly windowTopic: string;
  /** Milliseconds that an id is remembered. */
  readonly window: number;
  readonly log: SinkLog;
}

/** What a record is by the order of the log, and its ids. */
export interface Judged {
  readonly verdict: Verdict;
  readonly ids: readonly IdAt[];
}

/** An id of what is about to be written. */
export interface IdOf {
  readonly print: Buffer;
  /** Null: that of its record. */
  readonly second: number | null;
}

/**
 * Of a record that a person has sent on its way again, what it was retried as comes first: several who retry the same at once
 * mean it once. What was in quarantine until then has an id that nobody has noted.
 */
export function idsOf({
  event,
  dedupKey = event.id,
  again = null,
}: Pick<Extra, 'dedupKey' | 'again'> & { readonly event: Event }): readonly IdOf[] {
  const print = fingerprintOf(event.source, dedupKey, event.body);
  const own = { print, second: secondOf(event.receivedAt) };
  if (again === null) return [own];
  // No source has this name; and its number alone could be guessed.
  const retried = {
    print: fingerprintOf('', `${again} ${event.source} ${dedupKey}`, event.body),
    second: null,
  };
  return again.startsWith(RELEASED) ? [retried, own] : [retried];
}

/** The same of what was read. */
function idsAt(kept: Kept, { offset, time }: Pick<Read, 'offset' | 'time'>): readonly IdAt[] {
  return idsOf(kept).map(({ print, second }) => ({ print, second: second ?? secondOf(time), offset }));
}

/** Beginning of what a record is retried as. */
export const [RELEASED, RETRIED] = ['quarantine', 'dead letter'] as const;

function secondOf(time: number): number {
  return Math.max(0, Math.floor(time / SECOND));
}

/** The ids of records that lie in one chunk. */
export function encodeChunk(first: number, ids: readonly IdAt[]): Buffer {
  const bytes = Buffer.allocUnsafe(ids.length * ENTRY);
  for (const [index, { print, second, offset }] of ids.entries()) {
    print.copy(bytes, index * ENTRY);
    bytes.writeUInt32LE(second % 2 ** 32, index * ENTRY + FINGERPRINT_BYTES);
    bytes.writeUInt32LE(offset - first, index * ENTRY + FINGERPRINT_BYTES + 4);
  }
  return bytes;
}

/** Of the record of a chunk: which one it is. */
export function chunkKey(partition: number, first: number): Buffer {
  return Buffer.from(`${partition}/${first}`);
}

/**
 * The window of ids of one partition. It is made of the log's records from a window's length before a place, so every
 * process that makes it gets the same one: nothing of it has to be handed over. `windowTopic` has the ids of whole chunks, a
 * fortieth of the bytes; what is not there is read from the log itself.
 */
export class PartitionWindow {
  readonly #options: WindowOptions;
  readonly partition: number;
  readonly #ids: Ids;
  /** All from `from` up to before `to` is noted. */
  #from = 0;
  #to = 0;

  constructor(partition: number, options: WindowOptions) {
    this.partition = partition;
    this.#options = options;
    this.#ids = new Ids(Math.floor(options.window / SECOND));
  }

  /** Notes a record, and says what it is. */
  note(kept: Kept, place: Pick<Read, 'offset' | 'time'>): Judged {
    const ids = idsAt(kept, place);
    const [first = 'first', own] = ids.map(({ print, second, offset }) => {
      if (offset >= this.#to) this.#to = offset + 1;
      return this.#ids.note(print, second, offset);
    });
    // Released before: it came again to one who did not know it, and was in quarantine under another number.
    if (own === 'duplicate') return { verdict: own, ids };
    // Retried under the number of something else: the topic of what is set aside has been made anew since.
    return { verdict: kept.again !== null && first === 'reused' ? 'first' : first, ids };
  }

  /**
   * Reads what lies within the window before an offset, as far as it is not known. Throws when it cannot be read.
   * @returns when the record there was written; null when there is none yet
   */
  async cover(cluster: Cluster, upTo: number, signal: AbortSignal): Promise<number | null> {
    const { topic, window, log } = this.#options;
    const { partition } = this;
    const began = Date.now();
    const first = await cluster.recordAt(topic, partition, upTo, signal);
    const time = first?.time ?? began;
    const latest = first === null ? await cluster.offsets(topic, [partition], 'latest') : null;
    // A log that was cut, or made anew, ends before it.
    const offset = Math.min(upTo, latest?.get(partition) ?? upTo);
    const range = await cluster.offsets(topic, [partition], time - window - SLACK);
    // None is as young as that: nothing before it is in the window.
    const found = range.get(partition) ?? -1;
    const from = Math.min(found === -1 ? offset : found, offset);
    const isKnown = this.#to > this.#from && this.#from <= from;
    const begin = isKnown ? Math.max(from, this.#to) : from;
    if (begin >= offset) return first?.time ?? null;
    // What is read until it is told to stop is not read again.
    if (!isKnown) [this.#from, this.#to] = [from, from];
    const chunks = await this.#chunks(cluster, begin, offset, time, signal);
    let said = Date.now();
    for (let at = begin; at < offset;) {
      const chunk = chunks.get(at - (at % CHUNK));
      if (chunk !== undefined) {
        this.#noteChunk(at - (at % CHUNK), chunk);
        at += CHUNK - (at % CHUNK);
      } else {
        const end = Math.min(offset, at + CHUNK - (at % CHUNK));
        await this.#readLog(cluster, at, end, signal);
        at = end;
      }
      this.#to = Math.max(this.#to, Math.min(at, offset));
      if (Date.now() - said < PROGRESS_EVERY) continue;
      said = Date.now();
      log.info(
        { topic, partition, done: at - from, of: offset - from, ids: this.#ids.size },
        'reading the window',
      );
    }
    if (this.#ids.size > 0)
      log.info(
        { topic, partition, ids: this.#ids.size, ms: Math.round(Date.now() - began) },
        'window is read',
      );
    return first?.time ?? null;
  }

  /** Chunks by their first offset, as far as there are any. */
  async #chunks(
    cluster: Cluster,
    from: number,
    to: number,
    time: number,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Buffer>> {
    const { windowTopic, window } = this.#options;
    const { partition } = this;
    const chunks = new Map<number, Buffer>();
    if (to - from < CHUNK) return chunks;
    const { leaders } = await cluster.topic(windowTopic);
    if (leaders[partition] === undefined) return chunks;
    const begin =
      (await cluster.offsets(windowTopic, [partition], time - window - SLACK)).get(partition) ?? -1;
    if (begin === -1) return chunks;
    const end = (await cluster.offsets(windowTopic, [partition], 'latest')).get(partition) ?? 0;
    const span = { partition, from: begin, to: end };
    for await (const { key, value } of cluster.records(windowTopic, span, signal)) {
      const [of, first] = String(key ?? '')
        .split('/')
        .map(Number);
      if (of === partition && first !== undefined && value !== null && value.length % ENTRY === 0)
        chunks.set(first, Buffer.from(value));
    }
    return chunks;
  }

  #noteChunk(first: number, chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += ENTRY)
      this.#ids.note(
        chunk.subarray(at, at + FINGERPRINT_BYTES),
        chunk.readUInt32LE(at + FINGERPRINT_BYTES),
        first + chunk.readUInt32LE(at + FINGERPRINT_BYTES + 4),
      );
  }

  async #readLog(cluster: Cluster, from: number, to: number, signal: AbortSignal): Promise<void> {
    const span = { partition: this.partition, from, to };
    for await (const { records } of cluster.pages(this.#options.topic, span, signal))
      for (const record of records) {
        const kept = keptOf(record);
        for (const { print, second, offset } of kept === null ? [] : idsAt(kept, record))
          this.#ids.note(print, second, offset);
      }
  }
}
