import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { IncomingMessage } from '../../src/core/ingest.ts';
import type { CheckpointStore } from '../../src/core/source.ts';
import { Consumer } from '../../src/sources/consumer.ts';
import { parseOptions } from '../../src/sources/event-hubs/config.ts';
import { EventHubsSource } from '../../src/sources/event-hubs/source.ts';
import { ManualClock, silentLog } from '../deliver/support.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';
import { runCount } from '../support/run-count.ts';
import { until } from '../support/until.ts';

const PARTITIONS = 3;

type Step =
  | { readonly do: 'publish'; readonly partition: number; readonly count: number }
  /** The next batches are not taken, the next checkpoints not kept. */
  | { readonly do: 'refuse' | 'forget'; readonly times: number }
  /** Each batch takes so many turns of the event loop from now on. */
  | { readonly do: 'slow'; readonly turns: number }
  | { readonly do: 'cut' | 'away' | 'restart' }
  | { readonly do: 'wait'; readonly more: number };

const named = <Name extends string>(...names: Name[]): fc.Arbitrary<Name> => fc.constantFrom(...names);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: named('publish'),
        partition: fc.nat({ max: PARTITIONS - 1 }),
        // The SDK hands over 256 at most: the next batch then follows at once.
        count: fc.oneof(fc.integer({ min: 1, max: 30 }), fc.constantFrom(300, 600)),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: named('refuse', 'forget'), times: fc.integer({ min: 1, max: 3 }) }),
    },
    { weight: 2, arbitrary: fc.record({ do: named('slow'), turns: fc.constantFrom(0, 50, 5000) }) },
    { weight: 3, arbitrary: fc.record({ do: named('cut', 'away', 'restart') }) },
    { weight: 3, arbitrary: fc.record({ do: named('wait'), more: fc.integer({ min: 1, max: 40 }) }) },
  ),
  { minLength: 4, maxLength: 16, size: 'max' },
);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class World implements CheckpointStore {
  readonly #peer: AmqpPeer;
  readonly #clock = new ManualClock();
  readonly #saved = new Map<string, string>();
  readonly wrong: string[] = [];
  /** Ids, in the order in which they were taken for the first time. */
  readonly #taken = new Set<string>();
  #published = 0;
  #refuse = 0;
  #forget = 0;
  #turns = 0;
  #consumer: Consumer;

  constructor(peer: AmqpPeer) {
    this.#peer = peer;
    this.#consumer = this.#start();
  }

  load(key: string): Promise<string | null> {
    return Promise.resolve(this.#saved.get(key) ?? null);
  }

  async save(key: string, offset: string): Promise<void> {
    if (this.#forget > 0) {
      this.#forget -= 1;
      throw new Error('the disk is full');
    }
    const partition = Number(key.split('/').at(-1));
    for (const message of this.#peer.messages('events'))
      if (message.partition === partition && Number(message.offset) <= Number(offset))
        if (!this.#taken.has(idOf(message)))
          this.wrong.push(`${offset} is kept before ${idOf(message)} is taken`);
    this.#saved.set(key, offset);
    return Promise.resolve();
  }

  async follow(history: readonly Step[]): Promise<void> {
    for (const step of history) {
      if (step.do === 'publish') this.#publish(step.partition, step.count);
      else if (step.do === 'refuse') this.#refuse += step.times;
      else if (step.do === 'forget') this.#forget += step.times;
      else if (step.do === 'slow') this.#turns = step.turns;
      else if (step.do === 'cut') this.#peer.cut();
      else if (step.do === 'wait') await this.#reads(this.#taken.size + step.more);
      else if (step.do === 'restart') {
        await this.#consumer.stop(AbortSignal.timeout(1000));
        this.#consumer = this.#start();
      } else {
        await this.#peer.stop();
        await this.#peer.restart();
      }
    }
    await this.#reads(Infinity);
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const stored = this.#peer
        .messages('events')
        .filter((each) => each.partition === partition)
        .map(idOf);
      const read = [...this.#taken].filter((id) => stored.includes(id));
      if (String(read) !== String(stored))
        this.wrong.push(`partition ${partition} was read as ${String(read)}`);
    }
  }

  async end(): Promise<void> {
    await this.#consumer.stop(AbortSignal.timeout(1000));
    await this.#peer.stop();
  }

  #start(): Consumer {
    const { connectionString } = this.#peer;
    const options = parseOptions({ connectionString, hub: 'events', timeout: '500ms' });
    const parts = { name: 'pipeline', log: silentLog, clock: this.#clock };
    const source = new EventHubsSource(options, { ...parts, checkpoints: this });
    const consumer = new Consumer({ ...parts, source, deliver: (batch) => this.#take(batch) });
    consumer.start();
    return consumer;
  }

  async #take(batch: readonly IncomingMessage[]): Promise<void> {
    for (let left = this.#turns; left > 0; left -= 1) await turn();
    if (this.#refuse > 0) {
      this.#refuse -= 1;
      throw new Error('the journal is full');
    }
    for (const { properties } of batch) this.#taken.add(properties['idempotency-key'] ?? '');
  }

  #publish(partition: number, count: number): void {
    for (let left = count; left > 0; left -= 1) {
      this.#published += 1;
      const properties = { 'idempotency-key': `msg_${this.#published}` };
      this.#peer.add('events', partition, { body: Buffer.from('{}'), properties });
    }
  }

  #reads(count: number): Promise<unknown> {
    return until('messages to be taken', () => {
      this.#clock.next();
      // What a checkpoint has passed is not read again.
      if (this.wrong.length > 0) throw new Error(String(this.wrong));
      return this.#taken.size >= Math.min(count, this.#published);
    });
  }
}

function idOf({ properties }: { readonly properties: Readonly<Record<string, string>> }): string {
  return properties['idempotency-key'] ?? '';
}

test('every message is taken in the order of its partition, and no checkpoint stands before one that is not', async () => {
  const property = fc.asyncProperty(steps, async (history) => {
    const world = new World(await startAmqpPeer({ hubs: ['events'], partitions: PARTITIONS }));
    try {
      await world.follow(history);
      expect(world.wrong).toEqual([]);
    } finally {
      await world.end();
    }
  });
  await fc.assert(property, { numRuns: runCount({ quick: 4, long: 20 }) });
});
