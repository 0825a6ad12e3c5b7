import type { Selection } from '../../core/journal.ts';
import { Serial } from '../../lib/serial.ts';
import type { Appender } from './appender.ts';
import type { Cluster, FetchedRecord } from './cluster.ts';
import { recordedEventOf, type RecordedEvent } from './record.ts';

/** An event in a topic of its own until a person decides. */
export interface SetAsideRecord {
  /** Offset and partition in one number, the same for as long as the record exists. */
  readonly key: number;
  /** Names the record for `remove`. */
  readonly name: string;
  readonly recorded: RecordedEvent;
  readonly bodyBytes: number;
}

interface Entry extends SetAsideRecord {
  readonly partition: number;
  readonly offset: number;
  /** A tombstone with this key removes the record. */
  readonly recordKey: Buffer;
}

const EMPTY = Buffer.alloc(0);
/**
 * Factor of the offset in a key: more than a topic has partitions. With the number that it has, keys would change when it
 * gets more, after a person has listed them.
 */
const MOST_PARTITIONS = 100_000;

/**
 * The last record of each key in a compacted topic, unless it is a tombstone. The topic is read once, and then what is new;
 * bodies are fetched when they are asked for.
 */
export class SetAsideTopic {
  readonly #appender: Appender;
  readonly #cluster: Cluster;
  readonly #serial = new Serial();
  readonly #entries = new Map<string, Entry>();
  readonly #positions = new Map<number, number>();

  constructor(appender: Appender, cluster: Cluster) {
    this.#appender = appender;
    this.#cluster = cluster;
  }

  get name(): string {
    return this.#appender.topic;
  }

  async count(): Promise<number> {
    await this.#update();
    return this.#entries.size;
  }

  /** In the order of their keys. @param bodies false leaves them out */
  async list(
    { keys, id, sink, limit = Infinity, after = 0 }: Selection,
    bodies: boolean,
  ): Promise<readonly SetAsideRecord[]> {
    await this.#update();
    const wanted = keys === undefined ? null : new Set(keys);
    const found = [...this.#entries.values()]
      .filter(
        ({ key, recorded: { event, refusal } }) =>
          key > after &&
          (wanted?.has(key) ?? true) &&
          (id === undefined || event.id === id) &&
          (sink === undefined || refusal?.sink === sink),
      )
      .toSorted((a, b) => a.key - b.key)
      .slice(0, limit);
    if (!bodies) return found;
    const whole: SetAsideRecord[] = [];
    for (const { partition, offset, key, name, bodyBytes } of found) {
      const span = { partition, from: offset, to: offset + 1 };
      const record = await this.#cluster.first(this.name, span);
      const recorded = record === null ? null : recordedEventOf(record);
      if (recorded !== null) whole.push({ key, name, recorded, bodyBytes });
    }
    return whole;
  }

  /** @returns how many it removed */
  async drop(selection: Selection): Promise<number> {
    const found = await this.list(selection, false);
    await Promise.all(found.map(async ({ name }) => this.remove(name)));
    return found.length;
  }

  async remove(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    await this.#appender.append(entry.partition, { key: entry.recordKey, value: null, headers: [] });
    this.#entries.delete(name);
  }

  /** Reads what is new. */
  #update(): Promise<void> {
    const { name: topic } = this;
    return this.#serial.run(async () => {
      const { leaders } = await this.#cluster.topic(topic);
      const partitions = Array.from(leaders.keys());
      const ends = await this.#cluster.offsets(topic, partitions, 'latest');
      for (const partition of partitions) {
        const span = { partition, from: this.#positions.get(partition) ?? 0, to: ends.get(partition) ?? 0 };
        if (span.from >= span.to) continue;
        for await (const { records } of this.#cluster.pages(topic, span))
          for (const record of records) this.#note(partition, record);
        this.#positions.set(partition, span.to);
      }
    });
  }

  #note(partition: number, record: FetchedRecord): void {
    const { key: recordKey, offset } = record;
    if (recordKey === null) return;
    // With more partitions the same key goes to another one: a tombstone there says nothing of the record here.
    const name = `${partition} ${recordKey.toString('latin1')}`;
    this.#entries.delete(name);
    const recorded = recordedEventOf(record);
    if (recorded === null) return;
    this.#entries.set(name, {
      key: offset * MOST_PARTITIONS + partition + 1,
      name,
      recorded: { ...recorded, event: { ...recorded.event, body: EMPTY } },
      bodyBytes: recorded.event.body.length,
      partition,
      offset,
      recordKey: Buffer.from(recordKey),
    });
  }
}
