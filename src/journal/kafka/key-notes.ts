import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError } from '../../core/errors.ts';
import { isRecord } from '../../lib/is-record.ts';
import { Serial } from '../../lib/serial.ts';
import type { KeyNote, KeyNotes, NamedKey } from '../../seal/place-witness.ts';
import { toFailure } from '../../sinks/kafka/failure.ts';
import type { Read } from './cluster.ts';
import { readRange } from './read-range.ts';
import { outsideOf } from './sealed.ts';
import type { Topics } from './topics.ts';

/** Each note has a key of its own, which begins like this: compacting must leave all of them, in their order. */
const KEY = 'millrace-keys/';
const PARTITION = 0;
/** Of each partition, the records whose keys are looked for. */
const NEWEST = 8;
/** Milliseconds: brokers choose another leader within that, and between two tries. */
const [PATIENCE, PAUSE] = [30_000, 200];
const FETCH = { bytes: 8 * 1024 * 1024, wait: 0 } as const;
const NEVER = new AbortController().signal;

/**
 * What the topics say of the place of their keys: in the one of what is quarantined, for that is compacted, so that no note
 * is ever deleted. Whoever lists what is set aside passes over it, as over any record that has no event.
 */
export class TopicKeyNotes implements KeyNotes {
  readonly #topics: Topics;
  readonly #events: string;
  readonly #topic: string;
  readonly #serial = new Serial();
  readonly #end = new AbortController();
  #position = 0;

  constructor(
    topics: Topics,
    { topic, quarantineTopic }: { readonly topic: string; readonly quarantineTopic: string },
  ) {
    this.#topics = topics;
    this.#events = topic;
    this.#topic = quarantineTopic;
  }

  get where(): string {
    return `topic ${this.#topic}`;
  }

  read(): Promise<readonly KeyNote[]> {
    return this.#patiently(this.#topic, async () => {
      const cluster = await this.#topics.look();
      const to = (await cluster.offsets(this.#topic, [PARTITION], 'latest')).get(PARTITION);
      // Not known is not none: another place would be noted.
      if (to === undefined || to < this.#position) throw new Error('the end of partition 0 is not known');
      const found: KeyNote[] = [];
      const range = { from: this.#position, to };
      await readRange(cluster, this.#topic, PARTITION, range, NEVER, (record) =>
        found.push(...noteIn(record)),
      );
      this.#position = to;
      return found;
    });
  }

  async write(note: KeyNote): Promise<void> {
    const key = Buffer.from(`${KEY}${randomUUID()}`);
    const value = Buffer.from(JSON.stringify(note));
    await this.#topics.quarantine.append(PARTITION, { key, value, headers: [] });
  }

  end(): void {
    this.#end.abort();
  }

  newest(): Promise<readonly NamedKey[]> {
    return this.#patiently(this.#events, () => this.#newest());
  }

  /** A process can start while a broker that leads is gone. @throws MillraceError journal_unreadable */
  #patiently<T>(topic: string, work: () => Promise<T>): Promise<T> {
    return this.#serial.run(async () => {
      for (const end = performance.now() + PATIENCE; ;)
        try {
          return await work();
        } catch (error) {
          const detail = `topic ${topic}: ${toFailure(error).reason}`;
          if (performance.now() > end || this.#end.signal.aborted)
            throw new MillraceError('journal_unreadable', detail, { cause: error });
          await wait(PAUSE, undefined, { signal: this.#end.signal });
        }
    });
  }

  async #newest(): Promise<readonly NamedKey[]> {
    const cluster = await this.#topics.look();
    const { id, leaders } = await cluster.topic(this.#events, true);
    const all = [...leaders.keys()];
    const [first, last] = [
      await cluster.offsets(this.#events, all, 'earliest'),
      await cluster.offsets(this.#events, all, 'latest'),
    ];
    const found: [Read, NamedKey][] = [];
    for (const [leader, own] of Map.groupBy(all, (partition) => leaders[partition] ?? -1)) {
      const from = own.flatMap((partition): [number, number][] => {
        const end = last.get(partition) ?? 0;
        const begin = Math.max(first.get(partition) ?? 0, end - NEWEST);
        return begin < end ? [[partition, begin]] : [];
      });
      if (from.length === 0) continue;
      for (const { records } of await cluster.fetch(leader, { name: this.#events, id }, new Map(from), FETCH))
        for (const record of records.slice(-NEWEST)) {
          const outside = outsideOf(record);
          if (outside !== null && outside !== 'damaged') found.push([record, [outside.name, outside.id]]);
        }
    }
    const inTime = found.toSorted(([one], [other]) => one.time - other.time);
    return [...new Map(inTime.map(([, [name, key]]) => [key, [name, key] as const])).values()];
  }
}

function noteIn({ key, value }: Pick<Read, 'key' | 'value'>): KeyNote[] {
  if (value === null || key?.toString('latin1').startsWith(KEY) !== true) return [];
  try {
    const note: unknown = JSON.parse(String(value));
    return isNote(note) ? [note] : [];
  } catch {
    return [];
  }
}

function isNote(value: unknown): value is KeyNote {
  if (!isRecord(value)) return false;
  const { place, url, listed, destroyed, mac } = value;
  return (
    [place, url, mac].every((each) => typeof each === 'string') &&
    Number.isSafeInteger(listed) &&
    Array.isArray(destroyed) &&
    destroyed.every(
      (pair) => Array.isArray(pair) && pair.length === 2 && pair.every((each) => NAME.test(String(each))),
    )
  );
}

/** Of an owner's object, or of a key. */
const NAME = /^(?:[0-9a-f]{96}|[0-9a-f]{32})$/;
