import type { Selection } from '../../core/journal.ts';
import { Serial } from '../../lib/serial.ts';
import type { Appender } from './appender.ts';
import type { Cluster } from './cluster.ts';
import { readRange } from './read-range.ts';
import { keptOf, type Kept } from './record.ts';

/** What is kept in a topic of its own until a person decides. */
export interface Aside {
  /** Of its record: offset and partition in one number. */
  readonly key: number;
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
const NEVER = new AbortController().signal;

/**
 * A topic as the list of what lies in it: of each key the last record, unless that is a tombstone. It is read once, and then
 * what is new; bodies are fetched when they are asked for.
 */
export class SetAsideTopic {
  readonly #topic: string;
  readonly #appender: Appender;
  readonly #connect: () => Promise<Cluster>;
  readonly #serial = new Serial();
  readonly #entries = new Map<string, Entry>();
  readonly #positions = new Map<number, number>();
  #partitions = 0;

  constructor(topic: string, appender: Appender, connect: () => Promise<Cluster>) {
    this.#topic = topic;
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
    for (const entry of found) {
      const { partition, offset } = entry;
      await readRange(cluster, this.#topic, partition, { from: offset, to: offset + 1 }, NEVER, (record) => {
        const kept = keptOf(record);
        if (kept !== null) whole.push({ key: entry.key, kept, bodyBytes: entry.bodyBytes });
      });
    }
    return whole;
  }

  /** Takes them out. @returns how many */
  async drop(selection: Selection): Promise<number> {
    const found = await this.list(selection, false);
    await Promise.all(found.map(async ({ key }) => this.remove(key)));
    return found.length;
  }

  async remove(key: number): Promise<void> {
    const entry = [...this.#entries.values()].find((each) => each.key === key);
    if (entry === undefined) return;
    await this.#appender.append(entry.partition, { key: entry.recordKey, value: null, headers: [] });
    this.#entries.delete(entry.recordKey.toString('latin1'));
  }

  /** Reads what is new. */
  #update(): Promise<void> {
    return this.#serial.run(async () => {
      const cluster = await this.#connect();
      this.#partitions ||= (await cluster.topic(this.#topic)).leaders.length;
      const all = Array.from({ length: this.#partitions }, (_, index) => index);
      const ends = await cluster.offsets(this.#topic, all, 'latest');
      for (const partition of all) {
        const from = this.#positions.get(partition) ?? 0;
        const to = ends.get(partition) ?? 0;
        if (from >= to) continue;
        await readRange(
          cluster,
          this.#topic,
          partition,
          { from, to },
          NEVER,
          ({ key: recordKey, offset, ...record }) => {
            if (recordKey === null) return;
            const name = recordKey.toString('latin1');
            const kept = record.value === null ? null : keptOf(record);
            this.#entries.delete(name);
            if (kept === null) return;
            const bodyBytes = kept.event.body.length;
            const light = { ...kept, event: { ...kept.event, body: EMPTY } };
            const key = offset * this.#partitions + partition + 1;
            this.#entries.set(name, {
              key,
              kept: light,
              bodyBytes,
              partition,
              offset,
              recordKey: Buffer.from(recordKey),
            });
          },
        );
        this.#positions.set(partition, to);
      }
    });
  }
}
