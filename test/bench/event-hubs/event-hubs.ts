import { EventHubProducerClient } from '@azure/event-hubs';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/core/clock.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { Delivery, Sink } from '../../../src/core/sink.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { createSink, parseOptions } from '../../../src/sinks/event-hubs/sink.ts';
import { forkAmqpPeer } from '../../support/amqp-peer/process.ts';
import type { Bench, BenchResult } from '../bench.ts';
import { bareEventHubs } from '../sinks/bare.ts';
import { costOf, rateOf, shareOf, written, type Cost } from '../sinks/cost.ts';
import { quiet } from '../sinks/from-journal.ts';

const HUB = 'events';
const WARM_UP = 1;
const { signal } = new AbortController();

/** The Event Hubs sink against the vendor's SDK used directly, on the same events in the same groups. */
export const eventHubs: Bench = {
  summary: 'events a second through the Event Hubs sink, as a share of the bare SDK',
  help: `Flags:
  --events N   events a round (20000)
  --bytes N    body size (1200)
  --rounds N   pairs of rounds for each number of users (5)
`,
  run: async (argv, context) => {
    const { values } = parseArgs({
      args: [...argv],
      options: { events: { type: 'string' }, bytes: { type: 'string' }, rounds: { type: 'string' } },
    });
    const [events = 20_000, bytes = 1200, rounds = 5] = [values.events, values.bytes, values.rounds].map(
      (text) => (text === undefined ? undefined : Number(text)),
    );
    const results = [];
    for (const users of [1, 100, 100_000]) {
      results.push(await compare(makeEvents(events, bytes, users), users, rounds));
      context.note(`${users} users: measured`);
    }
    return report(results);
  },
};

interface Comparison {
  readonly users: number;
  readonly bare: readonly Cost[];
  readonly sink: readonly Cost[];
}

async function compare(events: readonly JournalEvent[], users: number, rounds: number): Promise<Comparison> {
  await using peer = await forkAmqpPeer({ hubs: [HUB], keep: false });
  const { connectionString } = peer;
  const client = new EventHubProducerClient(connectionString, HUB);
  const sink = createSink(parseOptions({ connectionString, hub: HUB }), {
    name: HUB,
    log: quiet,
    clock: systemClock,
  });
  await sink.open(signal);
  const costs: Record<'bare' | 'sink', Cost[]> = { bare: [], sink: [] };
  for (let at = -WARM_UP; at < rounds; at += 1) {
    const bare = await costOf(events.length, () => bareEventHubs(client, events, 'auto'));
    const ours = await costOf(events.length, () => sendBy(sink, events));
    if (at < 0) continue;
    costs.bare.push(bare);
    costs.sink.push(ours);
  }
  const { count } = await peer.taken(HUB);
  const wanted = events.length * 2 * (rounds + WARM_UP);
  if (count !== wanted) throw new Error(`the peer took ${count} messages instead of ${wanted}`);
  await sink.close(signal);
  await client.close();
  return { users, ...costs };
}

async function sendBy(sink: Sink, events: readonly JournalEvent[]): Promise<void> {
  const batches = slices(events)
    .map((slice) => slice.map((event): Delivery => ({ event, destination: null })))
    .values();
  const lane = async (): Promise<void> => {
    for (const batch of batches) {
      const results = await sink.send(batch, signal);
      if (results.some(({ status }) => status !== 'delivered')) throw new Error(JSON.stringify(results[0]));
    }
  };
  await Promise.all(Array.from({ length: sink.limits.inFlight }, lane));
}

function slices<T>(items: readonly T[], size = 500): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}

function makeEvents(count: number, bytes: number, users: number): JournalEvent[] {
  const meal = Array.from(
    { length: bytes / 50 },
    (_, i) => `"food-${i}":{"energy":${(i * 7919) % 997}.5,"fat":null}`,
  );
  return Array.from({ length: count }, (_, n) => {
    const text = `{"n":${n},"data":{${meal.join(',')}}}`.slice(0, bytes).padEnd(bytes);
    return contractEvent(n, { user: `user-${(n * 7919) % users}`, body: Buffer.from(text) });
  });
}

function report(results: readonly Comparison[]): BenchResult {
  const shares = results.map(({ users, bare, sink }) => ({
    users,
    bare: rateOf(bare),
    sink: rateOf(sink),
    share: shareOf(bare, sink, 'time'),
    cpuShare: shareOf(bare, sink, 'cpu'),
  }));
  return {
    figures: { eventsPerSecond: shares },
    rows: shares.map(({ users, bare, sink, cpuShare }) => [
      `${users} users, events/s`,
      `sink ${sink}, bare ${bare}, by CPU ${written(cpuShare)}`,
    ]),
    targets: shares.map(({ users, share }) => ({
      name: `share of the bare SDK, ${users} users`,
      wanted: '≥ 0.95',
      measured: written(share),
      met: share.median >= 0.95,
    })),
  };
}
