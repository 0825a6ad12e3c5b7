import { EventHubProducerClient } from '@azure/event-hubs';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/core/clock.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { Sink, SinkModule } from '../../../src/core/sink.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import * as eventHubs from '../../../src/sinks/event-hubs/sink.ts';
import * as pubsub from '../../../src/sinks/pubsub/sink.ts';
import { forkAmqpPeer } from '../../support/amqp-peer/process.ts';
import { lacksPubSubEmulator, startPubSubEmulator } from '../../support/pubsub-emulator.ts';
import { PROJECT } from '../../support/pubsub-peer/peer.ts';
import type { Bench, BenchResult, Target } from '../bench.ts';
import { collectGarbage } from '../garbage.ts';
import { median, round } from '../report.ts';
import { bareEventHubs, barePubSub, createTopic } from './bare.ts';
import { FilledJournal, quiet } from './from-journal.ts';
import { endToEnd } from './latency.ts';

const USERS = 100;
/** Event Hubs and Pub/Sub. */
const BROKERS = 2;

interface Comparison {
  readonly name: string;
  /** Events a second, medians. */
  readonly sink: number;
  readonly bare: number;
  /** Median over pairs of rounds. */
  readonly share: number;
}

/** The broker sinks, from the journal, against the vendors' SDKs sending the same batches in the same run. */
export const sinks: Bench = {
  summary:
    'events a second from the journal to the brokers, as a share of the bare SDKs; time from POST to broker',
  help: `Flags:
  --events N    events of a round (50000)
  --rounds N    pairs of rounds for each broker (9)
  --seconds N   length of the latency run at 1,000 events a second (10)
`,
  run: async (argv, context) => {
    const { values } = parseArgs({
      args: [...argv],
      options: { events: { type: 'string' }, rounds: { type: 'string' }, seconds: { type: 'string' } },
    });
    const count = Number(values.events ?? 50_000);
    const rounds = Number(values.rounds ?? 9);
    const journal = await FilledJournal.fill(makeEvents(count), BROKERS * (rounds + 1));
    const results: Comparison[] = [];
    try {
      results.push(await againstEventHubs(journal, count, rounds));
      context.note(line(results.at(-1)));
      const lack = lacksPubSubEmulator();
      if (lack === null) {
        results.push(await againstPubSub(journal, count, rounds));
        context.note(line(results.at(-1)));
      } else context.note(`pubsub: left out, ${lack}`);
    } finally {
      await journal.close();
    }
    const times = await endToEnd(1000, Number(values.seconds ?? 10));
    return report(results, times);
  },
};

async function againstEventHubs(journal: FilledJournal, count: number, rounds: number): Promise<Comparison> {
  await using peer = await forkAmqpPeer({ hubs: ['events'], keep: false });
  const { connectionString } = peer;
  const client = new EventHubProducerClient(connectionString, 'events');
  const sink = (): Sink => make(eventHubs, { connectionString, hub: 'events', compression: 'never' });
  const result = await compare('event-hubs', journal, count, rounds, sink, (events) =>
    bareEventHubs(client, events),
  );
  await client.close();
  return result;
}

async function againstPubSub(journal: FilledJournal, count: number, rounds: number): Promise<Comparison> {
  const emulator = await startPubSubEmulator();
  try {
    const { endpoint } = emulator;
    await createTopic(endpoint, PROJECT);
    const sink = (): Sink =>
      make(pubsub, { project: PROJECT, topic: 'events', endpoint, compression: 'never' });
    return await compare('pubsub', journal, count, rounds, sink, (events) =>
      barePubSub(endpoint, PROJECT, events),
    );
  } finally {
    await emulator.stop();
  }
}

function make<Options>(module: SinkModule<Options>, options: object): Sink {
  return module.createSink(module.parseOptions(options), { name: 'bench', log: quiet, clock: systemClock });
}

async function compare(
  name: string,
  journal: FilledJournal,
  count: number,
  rounds: number,
  sink: () => Sink,
  bare: (events: readonly JournalEvent[]) => Promise<void>,
): Promise<Comparison> {
  const rates: { sink: number; bare: number }[] = [];
  // The first pair warms up and is not counted.
  for (let at = 0; at <= rounds; at += 1) {
    const bareRate = await rateOf(bare, count);
    collectGarbage();
    const pair = { bare: bareRate, sink: await journal.playTo(sink()) };
    if (at > 0) rates.push(pair);
  }
  return {
    name,
    sink: round(median(rates.map((pair) => pair.sink))),
    bare: round(median(rates.map((pair) => pair.bare))),
    share: round(median(rates.map((pair) => pair.sink / pair.bare)), 2),
  };
}

/** Events a second. They are made for each round: those of all rounds would be in the way of whoever is not to send them. */
async function rateOf(
  send: (events: readonly JournalEvent[]) => Promise<void>,
  count: number,
): Promise<number> {
  const events = makeEvents(count);
  collectGarbage();
  const started = performance.now();
  await send(events);
  return (count / (performance.now() - started)) * 1000;
}

function line(result: Comparison | undefined): string {
  return result === undefined
    ? ''
    : `${result.name}: ${result.sink} events/s, bare ${result.bare}, share ${result.share}`;
}

function report(results: readonly Comparison[], times: readonly number[]): BenchResult {
  const at = (share: number): number => round(times[Math.floor(times.length * share)] ?? Number.NaN, 1);
  const targets: Target[] = results.map(({ name, share }) => ({
    name: `${name}, share of the bare SDK`,
    wanted: '≥ 0.8',
    measured: String(share),
    met: share >= 0.8,
  }));
  targets.push({
    name: 'POST to broker, p99',
    wanted: '< 250 ms',
    measured: `${at(0.99)} ms`,
    met: at(0.99) < 250,
  });
  return {
    figures: { brokers: results, p50_ms: at(0.5), p99_ms: at(0.99), per_second: 1000 },
    rows: [
      ...results.map(
        ({ name, sink, bare }) => [`${name}, events/s`, `from the journal ${sink}, bare ${bare}`] as const,
      ),
      ['POST to broker at 1,000/s', `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`] as const,
    ],
    targets,
  };
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
