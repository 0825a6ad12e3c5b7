import type { SinkLog } from '../../core/sink.ts';
import type { Cluster, FetchedRecord } from './cluster.ts';
import { FINGERPRINT_BYTES, fingerprintOf, IdTable, type IdAt, type Verdict } from './id-table.ts';
import { recordedEventOf, type PartitionOffset, type RawRecord, type RecordedEvent } from './record.ts';

/** Records of `topic` whose ids lie together in one record of `windowTopic`. */
export const CHUNK = 4096;
/** Bytes of an id: fingerprint, second, offset within the chunk. */
const ENTRY = FINGERPRINT_BYTES + 4 + 4;
/** Largest record of a chunk: an event that was released from quarantine has two ids. */
export const MOST_CHUNK_BYTES = CHUNK * ENTRY * 2 + 1024;
const SECOND = 1000;
/** Milliseconds by which a record can be older than the time its writer gave it. */
const SLACK = 60_000;
const PROGRESS_EVERY = 2000;

export interface WindowOptions {
  readonly topic: string;
  readonly windowTopic: string;
  /** Milliseconds that an id is remembered. */
  readonly dedupWindow: number;
  readonly log: SinkLog;
}

/** A record, and what it is by the order of the log. */
export interface JudgedRecord extends PartitionOffset {
  /** Null for a record of another program. */
  readonly recorded: RecordedEvent | null;
  readonly verdict: Verdict;
  readonly ids: readonly IdAt[];
}

/** How `again` begins: what a person retried. */
export const [RELEASED, RETRIED] = ['quarantine', 'dead letter'] as const;

/**
 * The ids of a record. A retry has an id of its own, which comes first: several people who retry the same event at once
 * mean it once. An event from quarantine has its id as well, which was not noted before.
 */
export function idsOf(
  { event, dedupKey, again }: Pick<RecordedEvent, 'event' | 'dedupKey' | 'again'>,
  { offset, time }: Pick<FetchedRecord, 'offset' | 'time'>,
): readonly IdAt[] {
  const { source, body, receivedAt } = event;
  const own = { print: fingerprintOf(source, dedupKey, body), second: secondOf(receivedAt), offset };
  if (again === null) return [own];
  // No source has an empty name. With the key and the bytes in it, the id cannot be guessed from the retry's number.
  const print = fingerprintOf('', `${again} ${source} ${dedupKey}`, body);
  const retry = { print, second: secondOf(time), offset };
  return again.startsWith(RELEASED) ? [retry, own] : [retry];
}

function secondOf(time: number): number {
  return Math.max(0, Math.floor(time / SECOND));
}

/** @param first offset of the chunk */
export function encodeChunk(first: number, ids: readonly IdAt[]): Buffer {
  const bytes = Buffer.allocUnsafe(ids.length * ENTRY);
  for (const [index, { print, second, offset }] of ids.entries()) {
    print.copy(bytes, index * ENTRY);
    bytes.writeUInt32LE(second % 2 ** 32, index * ENTRY + FINGERPRINT_BYTES);
    bytes.writeUInt32LE(offset - first, index * ENTRY + FINGERPRINT_BYTES + 4);
  }
  return bytes;
}

/** The key of the chunk's record. */
export function chunkKey(partition: number, first: number): Buffer {
  return Buffer.from(`${partition}/${first}`);
}

/**
 * The window of ids of one partition. It is made of the log's records from a window's length before an offset, so every
 * process gets the same one, and nothing has to be handed over. `windowTopic` has the ids of whole chunks, a fortieth of
 * the bytes; the ids of other records are read from the log itself.
 */
export class PartitionWindow {
  readonly #options: WindowOptions;
  readonly #partition: number;
  readonly #ids: IdTable;
  /** All from `from` up to before `to` is noted. */
  #from = 0;
  #to = 0;

  constructor(partition: number, options: WindowOptions) {
    this.#partition = partition;
    this.#options = options;
    this.#ids = new IdTable(Math.floor(options.dedupWindow / SECOND));
  }

  /** Notes a record, and says what it is. */
  judge(record: RawRecord & Pick<FetchedRecord, 'offset' | 'time'>): JudgedRecord {
    const { offset } = record;
    const recorded = recordedEventOf(record);
    const judged = { partition: this.#partition, offset, recorded };
    if (recorded === null) return { ...judged, verdict: 'first', ids: [] };
    const ids = idsOf(recorded, record);
    this.#to = Math.max(this.#to, offset + 1);
    const [first = 'first', own] = ids.map(({ print, second }) => this.#ids.note(print, second, offset));
    // Released before: it came again to a receiver that did not know it, and was in quarantine under another number.
    if (own === 'duplicate') return { ...judged, verdict: own, ids };
    // Retried under the number of something else: the topic of dead letters, or of the quarantine, was created again.
    const verdict = recorded.again !== null && first === 'reused' ? 'first' : first;
    return { ...judged, verdict, ids };
  }

  /**
   * Reads what lies within the window before an offset, and is not noted yet. @throws Error when it cannot be read
   * @returns when the first record from there on was written; null when there is none yet
   */
  async cover(cluster: Cluster, upTo: number, signal: AbortSignal): Promise<number | null> {
    const { topic, dedupWindow, log } = this.#options;
    const partition = this.#partition;
    const began = Date.now();
    const latest = await cluster.offsets(topic, [partition], 'latest');
    const end = latest.get(partition) ?? upTo;
    const first = await cluster.first(topic, { partition, from: upTo, to: end }, signal);
    const written = first?.time ?? null;
    const oldest = (written ?? began) - dedupWindow - SLACK;
    // A log that was cut, or created again, ends before it.
    const offset = Math.min(upTo, end);
    const found = (await cluster.offsets(topic, [partition], oldest)).get(partition) ?? -1;
    // Without a record that is young enough, nothing is in the window.
    const from = Math.min(found === -1 ? offset : found, offset);
    const isKnown = this.#to > this.#from && this.#from <= from;
    const begin = isKnown ? Math.max(from, this.#to) : from;
    if (begin >= offset) return written;
    // Noted at each step: what is read when this is aborted is not read again.
    if (!isKnown) [this.#from, this.#to] = [from, from];
    const chunks = await this.#chunks(cluster, offset - begin, oldest, signal);
    let said = Date.now();
    for (let at = begin; at < offset;) {
      const start = at - (at % CHUNK);
      const chunk = chunks.get(start);
      const stop = start + CHUNK;
      if (chunk !== undefined) this.#noteChunk(start, chunk);
      else await this.#readLog(cluster, at, Math.min(offset, stop), signal);
      at = Math.min(offset, stop);
      this.#to = Math.max(this.#to, at);
      if (Date.now() - said < PROGRESS_EVERY) continue;
      said = Date.now();
      const ids = this.#ids.size;
      log.info({ topic, partition, done: at - from, of: offset - from, ids }, 'reading the window');
    }
    const ids = this.#ids.size;
    if (ids > 0) log.info({ topic, partition, ids, ms: Math.round(Date.now() - began) }, 'window is read');
    return written;
  }

  /**
   * Chunks by their first offset, as far as there are any.
   * @param records that have to be read: fewer than a chunk are read from the log
   * @param oldest milliseconds since the epoch
   */
  async #chunks(
    cluster: Cluster,
    records: number,
    oldest: number,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Buffer>> {
    const { windowTopic } = this.#options;
    const partition = this.#partition;
    const chunks = new Map<number, Buffer>();
    if (records < CHUNK) return chunks;
    const { leaders } = await cluster.topic(windowTopic);
    if (leaders[partition] === undefined) return chunks;
    const begin = (await cluster.offsets(windowTopic, [partition], oldest)).get(partition) ?? -1;
    if (begin === -1) return chunks;
    const end = (await cluster.offsets(windowTopic, [partition], 'latest')).get(partition) ?? 0;
    for await (const page of cluster.pages(windowTopic, { partition, from: begin, to: end }, signal))
      for (const { key, value } of page.records) {
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
    const span = { partition: this.#partition, from, to };
    for await (const { records } of cluster.pages(this.#options.topic, span, signal))
      for (const record of records) this.judge(record);
  }
}
