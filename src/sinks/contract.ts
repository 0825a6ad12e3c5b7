import assert from 'node:assert/strict';
import type { JournalEvent } from '../core/event.ts';
import type { Delivery, SendResult, Sink } from '../core/sink.ts';
import { limitsOf } from './limits.ts';
import {
  type Arrived,
  assertAnswer,
  assertArrived,
  assertConfirmed,
  assertTaken,
  assertTroubles,
  isTaken,
  stateOf,
} from './contract-checks.ts';
import { awkwardBodies, contractEvent } from './contract-events.ts';

/** A sink under test with its far side. Each test makes its own. */
export interface ContractSubject {
  /** Not opened. */
  readonly sink: Sink;
  /** Destinations of the far side; empty when the sink has only its default place. */
  readonly destinations: readonly string[];
  /** Everything that has arrived, in order; called after `close`. */
  readonly arrived: () => Promise<readonly Arrived[]>;
  /** Makes the far side fail, and work again; or the reason why that cannot be arranged. */
  readonly outage?: { begin(): Promise<void>; end(): Promise<void> } | { readonly impossible: string };
  dispose(): Promise<void>;
}

/** One test: give `name` and `run` to any test runner. */
export interface ContractTest {
  readonly name: string;
  /** Why it cannot be run. */
  readonly skip?: string;
  readonly run: () => Promise<void>;
}

interface Case {
  readonly name: string;
  readonly needs?: 'destinations' | 'outage';
  readonly check: (subject: ContractSubject) => Promise<void>;
}

/**
 * The promises of `Sink` as tests, for the built-in sinks and for your own. The author of a sink reads this file as its
 * specification.
 *
 *     for (const test of await sinkContract(makeSubject)) it.skipIf(test.skip)(test.name, test.run);
 *
 * @param make called once now, to see what the subject can do, and once for each test
 */
export async function sinkContract(make: () => Promise<ContractSubject>): Promise<readonly ContractTest[]> {
  const sample = await make();
  const { destinations, outage = { impossible: 'the subject cannot arrange an outage' } } = sample;
  const reasons = {
    destinations: destinations.length > 0 ? null : 'the sink has one place only',
    outage: 'impossible' in outage ? outage.impossible : null,
  };
  await sample.dispose();
  return CASES.map(({ name, needs, check }) => {
    const reason = needs === undefined ? null : reasons[needs];
    const run = async (): Promise<void> => {
      const subject = await make();
      const strays = watchStrays();
      try {
        await check(subject);
        assertTroubles(subject.sink);
        await strays.expectNone();
      } finally {
        strays.stop();
        await subject.dispose();
      }
    };
    return reason === null ? { name, run } : { name, skip: reason, run };
  });
}

const CASES: readonly Case[] = [
  {
    name: 'declares limits that can be kept',
    check: async ({ sink }) => {
      const limits = limitsOf(sink);
      assert.ok(limits.eventBytes >= 1024, 'eventBytes must be at least 1 KiB');
    },
  },
  {
    name: 'opens and closes with nothing sent',
    check: async ({ sink, arrived }) => {
      await sink.open(live());
      await sink.close(live());
      assert.equal((await arrived()).length, 0);
    },
  },
  {
    name: 'answers once for each delivery, and what is delivered arrives',
    check: async (subject) => {
      const batch = deliveries(Math.min(subject.sink.limits.batchCount, 25));
      await sendAll(subject, [batch]);
      assertArrived(await subject.arrived(), batch);
    },
  },
  {
    name: 'takes a batch as large as its limits say',
    check: async (subject) => {
      const { limits } = subject.sink;
      const count = Math.min(limits.batchCount, Math.floor(limits.batchBytes / 200), 10_000);
      const batch = deliveries(count);
      await sendAll(subject, [batch]);
      assertArrived(await subject.arrived(), batch);
    },
  },
  {
    name: 'passes bodies on byte for byte',
    check: async (subject) => {
      const batch = awkwardBodies().map((body, seq) => delivery(contractEvent(seq + 1, { body })));
      await sendAll(subject, [batch]);
      assertArrived(await subject.arrived(), batch);
    },
  },
  {
    name: 'takes any text in ids, types and users',
    check: async (subject) => {
      const long = 'x'.repeat(10_240);
      const texts = ['../../x', 'a\r\nb', '\u001b[31mred', 'CON', '\u0000', 'ünïcode 🍲', long, '__proto__'];
      const batch = texts.map((text, seq) =>
        delivery(contractEvent(seq + 1, { type: text, team: text, user: text, clientUser: text })),
      );
      await subject.sink.open(live());
      const results = await subject.sink.send(batch, live());
      assertAnswer(results, batch);
      await subject.sink.close(live());
      await assertConfirmed(results);
      // A far side may have its own limits; then the event is refused, never lost and never changed.
      const accepted = batch.filter((_, i) => isTaken(results[i]));
      for (const result of results) assert.notEqual(result.status, 'retry', 'a retry cannot help');
      assertArrived(await subject.arrived(), accepted);
    },
  },
  {
    name: 'keeps the order of one user',
    check: async (subject) => {
      const { limits } = subject.sink;
      const size = Math.min(limits.batchCount, 10);
      const all = Array.from({ length: size * 3 }, (_, i) => delivery(contractEvent(i + 1, { user: 'one' })));
      const batches = [0, 1, 2].map((i) => all.slice(i * size, (i + 1) * size));
      await sendAll(subject, batches);
      const ids = (await subject.arrived()).map(({ id }) => id);
      assert.equal(new Set(ids).size, all.length);
      const sent = all.map(({ event }) => event.id);
      if (limits.order === 'user') assert.deepEqual(ids, sent);
    },
  },
  {
    name: 'takes as many sends at once as its limits say',
    check: async (subject) => {
      const sends = Math.min(subject.sink.limits.inFlight, 8);
      const batches = Array.from({ length: sends }, (_, i) => deliveries(3, i * 3));
      await subject.sink.open(live());
      const results = await Promise.all(batches.map((batch) => subject.sink.send(batch, live())));
      assertTaken(results.flat());
      await subject.sink.close(live());
      await assertConfirmed(results.flat());
      assertArrived(await subject.arrived(), batches.flat());
    },
  },
  {
    name: 'puts each event into its destination',
    needs: 'destinations',
    check: async (subject) => {
      const places = [null, ...subject.destinations];
      const batches = places.map((place, i) => deliveries(3, i * 3, place));
      await sendAll(subject, subject.sink.limits.batchBy === 'mixed' ? [batches.flat()] : batches);
      assertArrived(await subject.arrived(), batches.flat());
    },
  },
  {
    name: 'does not change the batch',
    check: async (subject) => {
      const batch = Object.freeze(deliveries(3).map((each) => Object.freeze(each)));
      const before = batch.map(({ event }) => Buffer.from(event.body));
      await sendAll(subject, [batch]);
      for (const [i, { event }] of batch.entries()) assert.deepEqual(event.body, before[i]);
    },
  },
  {
    name: 'gives up when the signal aborts, without claiming what it does not know',
    check: async (subject) => {
      const batch = deliveries(3);
      await subject.sink.open(live());
      const results = await subject.sink.send(batch, AbortSignal.abort()).catch((): SendResult[] => []);
      await subject.sink.close(live());
      const claimed = batch.filter((_, i) => results[i]?.status === 'delivered');
      assertArrived(await subject.arrived(), claimed, true);
    },
  },
  {
    name: 'closes when its signal has aborted already',
    check: async ({ sink }) => {
      await sink.open(live());
      await sink.send(deliveries(3), live());
      await sink.close(AbortSignal.abort());
    },
  },
  {
    name: 'never refuses or claims an event while the far side is down, and recovers',
    needs: 'outage',
    check: async (subject) => {
      const { sink, outage } = subject;
      if (outage === undefined || 'impossible' in outage) return;
      const batch = deliveries(3);
      await sink.open(live());
      await outage.begin();
      const during = await sink.send(batch, live()).catch((): SendResult[] => []);
      if (during.length > 0) assertAnswer(during, batch);
      for (const result of during) {
        assert.ok(result.status === 'retry' || result.status === 'held', `${result.status} during an outage`);
        assert.equal(await stateOf(result), 'pending', 'nothing is confirmed during an outage');
      }
      await outage.end();
      const after = await sink.send(batch, live());
      assertTaken(after);
      await sink.close(live());
      await assertConfirmed([...during, ...after]);
      assertArrived(await subject.arrived(), batch, true);
    },
  },
];

/** Collects uncaught errors: in a receiver they pause the sink, in another program they would end it. */
function watchStrays(): { expectNone(): Promise<void>; stop(): void } {
  const strays: unknown[] = [];
  const note = (error: unknown): void => void strays.push(error);
  process.on('unhandledRejection', note);
  process.on('uncaughtExceptionMonitor', note);
  return {
    expectNone: async () => {
      // Unhandled rejections are reported after their turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(strays, [], 'every rejection is handled, and nothing is thrown outside of a call');
    },
    stop: () => {
      process.off('unhandledRejection', note);
      process.off('uncaughtExceptionMonitor', note);
    },
  };
}

function live(): AbortSignal {
  return new AbortController().signal;
}

function delivery(event: JournalEvent, destination: string | null = null): Delivery {
  return { event, destination };
}

function deliveries(count: number, from = 0, destination: string | null = null): Delivery[] {
  return Array.from({ length: count }, (_, i) => delivery(contractEvent(from + i + 1), destination));
}

/** Opens the sink, sends the batches one after another, expects `delivered` or `held`, and closes it. */
async function sendAll({ sink }: ContractSubject, batches: readonly (readonly Delivery[])[]): Promise<void> {
  await sink.open(live());
  const all: SendResult[] = [];
  for (const batch of batches) {
    const results = await sink.send(batch, live());
    assertAnswer(results, batch);
    assertTaken(results);
    all.push(...results);
  }
  await sink.close(live());
  await assertConfirmed(all);
}
