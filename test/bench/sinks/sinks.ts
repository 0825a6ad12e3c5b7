import { EventHubProducerClient } from '@azure/event-hubs';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/core/clock.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { Sink, SinkModule } from '../../../src/core/sink.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import * as eventHubs from '../../../src/sinks/event-hubs/sink.ts';
import * as pubsub from '../../../src/sinks/pubsub/sink.ts';
import { forkAmqpPeer } from '../../support/amqp-peer/process.ts';
import { PROJECT } from '../../support/pubsub-peer/peer.ts';
import type { Bench, BenchResult, Target } from '../bench.ts';
import { round } from '../report.ts';
import { bareEventHubs, barePubSub, publisher } from './bare.ts';
import { costOf, rateOf, shareOf, written, type Cost } from './cost.ts';
import { FilledJournal, MemoryJournal, quiet } from './from-journal.ts';
import { endToEnd } from './latency.ts';
import { forkPubSubFarSide } from './pubsub-far-side.ts';

const USERS = 100;
/** Event Hubs and Pub/Sub. */
const BROKERS = 2;

interface Costs {
  readonly name: string;
  readonly bare: readonly Cost[];
  /** The sink and the dispatcher, the events in memory as the SDK has them. */
  readonly memory: readonly Cost[];
  /** The same, out of a journal on disk. */
  readonly journal: readonly Cost[];
}

/** The broker sinks behind the dispatcher, against the vendors' SDKs sending the same events in the same run. */
export const sinks: Bench = {
  summary:
    'events a second through the dispatcher to the brokers, as a share of the bare SDKs; time from POST to broker',
  help: `Flags:
  --events N    events of a round (50000)
  --rounds N    rounds for each broker (9)
  --seconds N   length of the latency run at 1,000 events a second, above 1 (10)
`,
  run: async (argv, context) => {
    const { values } = parseArgs({
      args: [...argv],
      options: { events: { type: 'string' }, rounds: { type: 'string' }, seconds: { type: 'string' } },
    });
    const count = Number(values.events ?? 50_000);
    const rounds = Number(values.rounds ?? 9);
    const journal = await FilledJournal.fill(makeEvents(count), BROKERS * (rounds + 1));
    const results: Costs[] = [];
    try {
      for (const broker of [againstEventHubs, againstPubSub]) {
        const costs = await broker(journal, count, rounds);
        results.push(costs);
        for (const [what, figure] of rowsOf(costs)) context.note(`${what}: ${figure}`);
      }
    } finally {
      await journal.close();
    }
    const times = await endToEnd(1000, Number(values.seconds ?? 10));
    return report(results, times);
  },
};

async function againstEventHubs(journal: FilledJournal, count: number, rounds: number): Promise<Costs> {
  await using peer = await forkAmqpPeer({ hubs: ['events'], keep: false });
  const { connectionString } = peer;
  const client = new EventHubProducerClient(connectionString, 'events');
  const sink = (): Sink => make(eventHubs, { connectionString, hub: 'events', compression: 'never' });
  const costs = await compare(journal, count, rounds, sink, (events) =>
    bareEventHubs(client, events, 'never'),
  );
  await client.close();
  checkTaken((await peer.taken('events')).count, count, rounds);
  return { name: 'event-hubs', ...costs };
}

async function againstPubSub(journal: FilledJournal, count: number, rounds: number): Promise<Costs> {
  await using farSide = await forkPubSubFarSide();
  const { endpoint } = farSide;
  const client = publisher(endpoint, PROJECT);
  const sink = (): Sink =>
    make(pubsub, { project: PROJECT, topic: 'events', endpoint, compression: 'never' });
  const costs = await compare(journal, count, rounds, sink, (events) => barePubSub(client, PROJECT, events));
  await client.close();
  checkTaken(await farSide.taken(), count, rounds);
  return { name: 'pubsub', ...costs };
}

/** Three sides have sent all events in each round and once to warm up. */
function checkTaken(taken: number, count: number, rounds: number): void {
  const wanted = 3 * count * (rounds + 1);
  if (taken !== wanted) throw new Error(`the far side took ${taken} messages instead of ${wanted}`);
}

function make<Options>(module: SinkModule<Options>, options: object): Sink {
  return module.createSink(module.parseOptions(options), { name: 'bench', log: quiet, clock: systemClock });
}

/** One after the other, round by round; the first round warms up and is not counted. */
async function compare(
  journal: FilledJournal,
  count: number,
  rounds: number,
  sink: () => Sink,
  bare: (events: readonly JournalEvent[]) => Promise<void>,
): Promise<Omit<Costs, 'name'>> {
  const costs: Record<'bare' | 'memory' | 'journal', Cost[]> = { bare: [], memory: [], journal: [] };
  for (let at = 0; at <= rounds; at += 1) {
    // Made for each round: those of all rounds would be in the way of whoever is not to send them.
    const events = makeEvents(count);
    const inMemory = new MemoryJournal(makeEvents(count));
    const costsNow = {
      bare: await costOf(count, () => bare(events)),
      memory: await played(inMemory, sink()),
      journal: await played(journal, sink()),
    };
    if (at === 0) continue;
    for (const side of ['bare', 'memory', 'journal'] as const) costs[side].push(costsNow[side]);
  }
  return costs;
}

async function played(journal: FilledJournal | MemoryJournal, sink: Sink): Promise<Cost> {
  // Connected beforehand, as the SDK's own client is.
  await sink.open(AbortSignal.timeout(30_000));
  const closing: (() => Promise<void>)[] = [];
  const cost = await costOf(journal.count, async () => void closing.push(await journal.playTo(sink)));
  for (const close of closing) await close();
  return cost;
}

function rowsOf({ name, bare, ...ours }: Costs): (readonly [string, string])[] {
  const rows: (readonly [string, string])[] = [[`${name}, bare SDK`, `${rateOf(bare)} events/s`]];
  for (const [from, costs] of Object.entries(ours)) {
    const share = written(shareOf(bare, costs, 'time'));
    const cpu = written(shareOf(bare, costs, 'cpu'));
    rows.push([`${name}, from ${from}`, `${rateOf(costs)} events/s, rate ${share}, by CPU ${cpu}`]);
  }
  return rows;
}

function report(results: readonly Costs[], times: readonly number[]): BenchResult {
  const at = (share: number): number => round(times[Math.floor(times.length * share)] ?? Number.NaN, 1);
  const target = (
    name: string,
    wanted: number,
    { bare, ...costs }: Costs,
    from: 'memory' | 'journal',
  ): Target => {
    const share = shareOf(bare, costs[from], 'time');
    return { name, wanted: `≥ ${wanted}`, measured: written(share), met: share.median >= wanted };
  };
  const targets = results.flatMap((costs) => [
    target(`${costs.name}, share of the bare SDK`, 0.95, costs, 'memory'),
    target(`${costs.name}, the same from the journal`, 0.8, costs, 'journal'),
  ]);
  targets.push({
    name: 'POST to broker, p99',
    wanted: '< 250 ms',
    measured: `${at(0.99)} ms`,
    met: at(0.99) < 250,
  });
  return {
    figures: { brokers: results.map(figuresOf), p50_ms: at(0.5), p99_ms: at(0.99), per_second: 1000 },
    rows: [
      ...results.flatMap(rowsOf),
      ['POST to broker at 1,000/s', `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`] as const,
    ],
    targets,
  };
}

function figuresOf({ name, bare, memory, journal }: Costs): object {
  const ours = (costs: readonly Cost[]): object => ({
    events_per_second: rateOf(costs),
    share: shareOf(bare, costs, 'time'),
    cpu_share: shareOf(bare, costs, 'cpu'),
  });
  return { name, bare: { events_per_second: rateOf(bare) }, memory: ours(memory), journal: ours(journal) };
}

function makeEvents(count: number): JournalEvent[] {
  const meal = Array.from(
    { length: 24 },
    (_, i) => `"food-${i}":{"energy":${(i * 7919) % 997}.5,"fat":null}`,
  );
  return Array.from({ length: count }, (_, n) => {
    const text = `{"n":${n},"data":{${meal.join(',')}}}`.slice(0, 1200).padEnd(1200);
    return contractEvent(n, { id: `made-up-${n}`, user: `user-${n % USERS}`, body: Buffer.from(text) });
  });
}
