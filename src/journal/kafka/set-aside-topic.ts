import type { Selection } from '../../core/journal.ts';
import { Serial } from '../../lib/serial.ts';
import type { Appender } from './appender.ts';
import type { Cluster, Read } from './cluster.ts';
import { keptOf, type Kept } from './record.ts';

/** What is kept in a topic of its own until a person decides. */
export interface Aside {
  /** Of its record: offset and partition in one number, the same for as long as the record is there. */
  readonly key: number;
  /** Partition and key of its record: takes it out. */
  readonly place: string;
  readonly kept: Kept;
  readonly bodyBytes: number;
}

interface Entry extends Aside {
  readonly partition: number;
  readonly offset: number;
  /** Key of the record, under which a tombstone takes it out. */
  readonly recordKey: Buffer;
}

const EMPTY = Buffer.alloc(0);
/**
 * More than a topic has partitions. By how many it has, keys would change when they become more, under the hands of
 * whoever has listed them.
 */
const MOST_PARTITIONS = 100_000;

/**
 * A topic as the list of what lies in it: of each key the last record, unless that is a tombstone. It is read once, and then
 * what is new; bodies are fetched when they are asked for.
 */
export class SetAsideTopic {
  readonly #appender: Appender;
  readonly #connect: () => Promise<Cluster>;
  readonly #serial = new Serial();
  readonly #entries = new Map<string, Entry>();
  readonly #positions = new Map<number, number>();

  constructor(appender: Appender, connect: () => Promise<Cluster>) {
    this.#appender = appender;
    this.#connect = connect;
  }

  async count(): Promise<number> {
    await this.#update();
    return this.#entries.size;
  }

  /** In the order of their keys. @param bodies false leaves them out */
  async list(
    { keys, id, sink, limit = Infinity, after = 0 }: Selection,
    bodies: boolean,
  ): Promise<readonly Aside[]> {
    await this.#update();
    const wanted = keys === undefined ? null : new Set(keys);
    const found = [...this.#entries.values()]
      .filter(
        ({ key, kept }) =>
          key > after &&
          (wanted?.has(key) ?? true) &&
          (id === undefined || kept.event.id === id) &&
          (sink === undefined || kept.letter?.sink === sink),
      )
      .toSorted((a, b) => a.key - b.key)
      .slice(0, limit);
    if (!bodies) return found;
    const cluster = await this.#connect();
    const whole: Aside[] = [];
    for (const { partition, offset, key, place, bodyBytes } of found) {
      const span = { partition, from: offset, to: offset + 1 };
      for await (const record of cluster.records(this.#appender.topic, span)) {
        const kept = keptOf(record);
        if (kept !== null) whole.push({ key, place, kept, bodyBytes });
      }
    }
    return whole;
  }

  /** Takes them out. @returns how many */
  async drop(selection: Selection): Promise<number> {
    const found = await this.list(selection, false);
    await Promise.all(found.map(async ({ place }) => this.remove(place)));
    return found.length;
  }

  async remove(place: string): Promise<void> {
    const entry = this.#entries.get(place);
    if (entry === undefined) return;
    await this.#appender.append(entry.partition, { key: entry.recordKey, value: null, headers: [] });
    this.#entries.delete(place);
  }

  /** Reads what is new. */
  #update(): Promise<void> {
    return this.#serial.run(async () => {
      const cluster = await this.#connect();
      // They can become more.
      const { leaders } = await cluster.topic(this.#appender.topic);
      const all = Array.from(leaders.keys());
      const ends = await cluster.offsets(this.#appender.topic, all, 'latest');
      for (const partition of all) {
        const from = this.#positions.get(partition) ?? 0;
        const to = ends.get(partition) ?? 0;
        if (from >= to) continue;
        for await (const record of cluster.records(this.#appender.topic, { partition, from, to }))
          this.#note(partition, record);
        this.#positions.set(partition, to);
      }
    });
  }

  #note(partition: number, record: Read): void {
    const { key: recordKey, offset } = record;
    if (recordKey === null) return;
    // With more partitions the same key goes to another one, and what takes it out of the first says nothing of the second.
    const place = `${partition} ${recordKey.toString('latin1')}`;
    this.#entries.delete(place);
    const kept = keptOf(record);
    // A tombstone, or a stranger's.
    if (kept === null) return;
    this.#entries.set(place, {
      key: offset * MOST_PARTITIONS + partition + 1,
      place,
      kept: { ...kept, event: { ...kept.event, body: EMPTY } },
      bodyBytes: kept.event.body.length,
      partition,
      offset,
      recordKey: Buffer.from(recordKey),
    });
  }
}
