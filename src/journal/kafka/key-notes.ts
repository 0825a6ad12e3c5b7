import { randomUUID } from 'node:crypto';
import { isRecord } from '../../lib/is-record.ts';
import { jsonIn } from '../../lib/parsed.ts';
import { Serial } from '../../lib/serial.ts';
import { said, type KeyNote, type KeyNotes, type NamedKey } from '../../seal/place-witness.ts';
import type { Read } from './cluster.ts';
import { patiently } from './patience.ts';
import { pagesOf, readRange } from './read-range.ts';
import { outsideOf } from './sealed.ts';
import type { Topics } from './topics.ts';

/** Each note has a key of its own, which begins like this: compacting must leave all of them, in their order. */
const KEY = 'millrace-keys/';
const PARTITION = 0;
/** Of each partition, the records whose keys are looked for. */
const NEWEST = 8;
/** Records at the beginning and the end of a topic that are looked at by who has no keys. */
const LOOKED_AT = 4096;
/** As brokers say it. */
const UNKNOWN = -1;
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
      const to = known(await cluster.offsets(this.#topic, [PARTITION], 'latest'), PARTITION);
      if (to < this.#position) throw new Error(`partition ${PARTITION}: its end is not known`);
      const found: KeyNote[] = [];
      const range = { from: this.#position, to };
      await readRange(cluster, this.#topic, PARTITION, range, NEVER, (record) =>
        found.push(...noteIn(record)),
      );
      this.#position = to;
      return found;
    });
  }

  /**
   * Why who has no keys must not write here; null where nothing says so. Of a long topic the beginning and the end are read:
   * the first note is there, or was made when events had come for long, and those that came since are sealed.
   */
  async whySealed(): Promise<string | null> {
    const note = await this.#patiently(this.#topic, () => this.#someNote());
    if (note !== null) return said(this, note);
    const isSealed = (await this.newest()).length > 0;
    return isSealed ? `the newest events of topic ${this.#events} are sealed` : null;
  }

  async #someNote(): Promise<KeyNote | null> {
    const cluster = await this.#topics.look();
    const [begin, end] = [
      known(await cluster.offsets(this.#topic, [PARTITION], 'earliest'), PARTITION),
      known(await cluster.offsets(this.#topic, [PARTITION], 'latest'), PARTITION),
    ];
    const behind = Math.min(end, begin + LOOKED_AT);
    for (const range of [
      { from: begin, to: behind },
      { from: Math.max(behind, end - LOOKED_AT), to: end },
    ])
      for await (const { records } of pagesOf(cluster, this.#topic, PARTITION, range, this.#end.signal)) {
        const [note] = records.flatMap(noteIn);
        if (note !== undefined) return note;
      }
    return null;
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

  #patiently<T>(topic: string, work: () => Promise<T>): Promise<T> {
    return this.#serial.run(() => patiently(topic, work, this.#end.signal));
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
        const [begin, end] = [known(first, partition), known(last, partition)];
        return begin < end ? [[partition, Math.max(begin, end - NEWEST)]] : [];
      });
      if (from.length === 0) continue;
      const asked = { name: this.#events, id };
      for (const { partition, error, records } of await cluster.fetch(leader, asked, new Map(from), FETCH)) {
        if (error !== 'NONE') throw new Error(`partition ${partition}: ${error}`);
        for (const record of records.slice(-NEWEST)) {
          const outside = outsideOf(record);
          if (outside !== null && outside !== 'damaged') found.push([record, [outside.name, outside.id]]);
        }
      }
    }
    const inTime = found.toSorted(([one], [other]) => one.time - other.time);
    return [...new Map(inTime.map(([, [name, key]]) => [key, [name, key] as const])).values()];
  }
}

/** Not known is not none: another place would be noted, and its keys used. */
function known(offsets: ReadonlyMap<number, number>, partition: number): number {
  const offset = offsets.get(partition) ?? UNKNOWN;
  if (offset <= UNKNOWN) throw new Error(`partition ${partition}: its offsets are not known`);
  return offset;
}

function noteIn({ key, value }: Pick<Read, 'key' | 'value'>): KeyNote[] {
  if (value === null || key?.toString('latin1').startsWith(KEY) !== true) return [];
  const note = jsonIn(String(value));
  return isNote(note) ? [note] : [];
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
