import { expect, test } from 'vitest';
import type { Cluster, Read } from '../../src/journal/kafka/cluster.ts';
import { TopicKeyNotes } from '../../src/journal/kafka/key-notes.ts';
import type { Topics } from '../../src/journal/kafka/topics.ts';

const [EVENTS, QUARANTINE] = ['events', 'quarantine'];
const PAGE = 500;
const ID = 'ab'.repeat(16);
const NAME = 'cd'.repeat(48);
const NOTE = { place: 'place', url: 'file:///keys', listed: 0, destroyed: [], mac: 'mac' };

const plain = { key: Buffer.from('k'), value: Buffer.from('{}'), headers: [], time: 0 };
const noted = {
  ...plain,
  key: Buffer.from('millrace-keys/1'),
  value: Buffer.from(JSON.stringify(NOTE)),
};
const outside = { id: ID, name: NAME, at: 1, ids: [], again: false };
const sealed = {
  ...plain,
  headers: [[Buffer.from('millrace-sealed'), Buffer.from(JSON.stringify(outside))]] as const,
};

/** A topic of each, with so many records, of which some are special. */
class MadeUpTopics {
  readonly #ends: Readonly<Record<string, number>>;
  readonly #special: Readonly<Record<string, Omit<Read, 'offset'>>>;
  fetched = 0;
  /** What is wrong with the next answers. */
  readonly troubles: ('unknown end' | 'no leader')[] = [];
  isDown = false;

  constructor(quarantined: number, special: Readonly<Record<string, Omit<Read, 'offset'>>> = {}) {
    this.#ends = { [EVENTS]: 100, [QUARANTINE]: quarantined };
    this.#special = special;
  }

  get notes(): TopicKeyNotes {
    return new TopicKeyNotes({ look: () => this.#look() } as unknown as Topics, {
      topic: EVENTS,
      quarantineTopic: QUARANTINE,
    });
  }

  async #look(): Promise<Cluster> {
    if (this.isDown) throw new Error('no broker answers');
    return {
      topic: async (id: string) => ({ id, leaders: [1] }),
      offsets: async (topic: string, _: unknown, time: unknown) => {
        if (time === 'latest' && this.#is('unknown end')) return new Map();
        return new Map([[0, time === 'latest' ? (this.#ends[topic] ?? 0) : 0]]);
      },
      fetch: async (_: number, { name }: { name: string }, from: ReadonlyMap<number, number>) => {
        const at = from.get(0) ?? 0;
        if (this.#is('no leader'))
          return [{ partition: 0, error: 'NOT_LEADER_OR_FOLLOWER', records: [], next: at, end: -1 }];
        const next = Math.min(this.#ends[name] ?? 0, at + PAGE);
        const records = Array.from({ length: next - at }, (_each, n) => {
          return { ...(this.#special[`${name} ${at + n}`] ?? plain), offset: at + n };
        });
        this.fetched += records.length;
        return [{ partition: 0, error: 'NONE', records, next, end: next }];
      },
    } as unknown as Cluster;
  }

  #is(trouble: (typeof this.troubles)[number]): boolean {
    if (this.troubles[0] !== trouble) return false;
    this.troubles.shift();
    return true;
  }
}

test.each([
  [`${QUARANTINE} 7`, noted, /^topic quarantine says .* place place, which was file:\/\/\/keys$/],
  [`${QUARANTINE} 999990`, noted, /^topic quarantine says /],
  [`${EVENTS} 98`, sealed, /^the newest events of topic events are sealed$/],
])('without keys the note or what is sealed is found at %s, and little is read', async (at, record, why) => {
  const topics = new MadeUpTopics(1_000_000, { [at]: record });
  expect(await topics.notes.whySealed()).toMatch(why);
  expect(topics.fetched).toBeLessThan(10_000);
});

test.each([0, 10, 5000, 1_000_000])(
  'without keys nothing is sealed, of %d that are quarantined',
  async (count) => {
    const topics = new MadeUpTopics(count);
    expect(await topics.notes.whySealed()).toBeNull();
    expect(topics.fetched).toBeLessThan(10_000);
  },
);

test.each(['unknown end', 'no leader'] as const)(
  'the keys of the newest events are not overlooked for %s: it is asked again',
  async (trouble) => {
    const topics = new MadeUpTopics(0, { [`${EVENTS} 98`]: sealed });
    topics.troubles.push(trouble);
    expect(await topics.notes.newest()).toEqual([[NAME, ID]]);
    expect(topics.troubles).toEqual([]);
  },
);

test('a stop ends the wait for brokers that do not answer', async () => {
  const topics = new MadeUpTopics(0);
  topics.isDown = true;
  const { notes } = topics;
  const waiting = [notes.read(), notes.newest(), notes.whySealed()];
  notes.end();
  for (const each of await Promise.allSettled(waiting))
    expect(each).toMatchObject({ status: 'rejected', reason: { code: 'journal_unreadable' } });
});
