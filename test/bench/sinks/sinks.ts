import { EventHubProducerClient } from '@azure/event-hubs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { systemClock } from '../../../src/core/clock.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { Sink, SinkModule } from '../../../src/core/sink.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import * as eventHubs from '../../../src/sinks/event-hubs/sink.ts';
import * as pubsub from '../../../src/sinks/pubsub/sink.ts';
import { PROJECT } from '../../support/pubsub-peer/peer.ts';
import { bench, type BenchContext } from '../bench.ts';
import { type Figure, round } from '../figures.ts';
import { mealBody } from '../ingest/requests.ts';
import { inTurns, ratios } from '../rounds.ts';
import { bareEventHubs, barePubSub, publisher } from './bare.ts';
import { forkFarSide } from './far-sides.ts';
import { FilledJournal, MemoryJournal, quiet } from './from-journal.ts';
import { endToEnd } from './latency.ts';

const USERS = 100;
/** Event Hubs and Pub/Sub. */
const BROKERS = 2;
/** Events a second of the latency run. */
const PER_SECOND = 1000;

/** The broker sinks behind the dispatcher, against the vendors' SDKs sending the same events in the same run. */
export const sinks = bench(
  'events a second through the dispatcher to the brokers, as a share of the bare SDKs; time from POST to broker',
  {
    events: [50_000, 'events of a round'],
    rounds: [9, 'rounds for each broker'],
    seconds: [10, `length of the latency run at ${PER_SECOND} events a second`, 2],
  },
  async ({ events, rounds, seconds }, context) => {
    const journal = await FilledJournal.fill(context.folder, makeEvents(events), BROKERS * (rounds + 1));
    context.atEnd(() => journal.close());
    const size = { journal, events, rounds };
    const figures = [...(await againstEventHubs(size, context)), ...(await againstPubSub(size, context))];
    const times = await endToEnd(PER_SECOND, seconds, context);
    const at = (share: number): number => times[Math.floor(times.length * share)] ?? Number.NaN;
    const ms = { unit: ' ms', digits: 1 };
    return [
      ...figures,
      { name: `POST to broker at ${PER_SECOND}/s, p50`, values: [at(0.5)], ...ms },
      { name: `POST to broker at ${PER_SECOND}/s, p99`, values: [at(0.99)], ...ms, wanted: '< 250' },
    ];
  },
);

interface Size {
  readonly journal: FilledJournal;
  readonly events: number;
  readonly rounds: number;
}

async function againstEventHubs(size: Size, context: BenchContext): Promise<Figure[]> {
  await using farSide = await forkFarSide('event-hubs');
  const { address: connectionString } = farSide;
  const client = new EventHubProducerClient(connectionString, 'events');
  const sink = (): Sink => make(eventHubs, { connectionString, hub: 'events', compression: 'never' });
  const figures = await compare('event-hubs', size, sink, (events) => bareEventHubs(client, events), context);
  await client.close();
  checkTaken(await farSide.taken(), size);
  return figures;
}

async function againstPubSub(size: Size, context: BenchContext): Promise<Figure[]> {
  await using farSide = await forkFarSide('pubsub');
  const { address: endpoint } = farSide;
  const client = publisher(endpoint, PROJECT);
  const sink = (): Sink =>
    make(pubsub, { project: PROJECT, topic: 'events', endpoint, compression: 'never' });
  const bare = (events: readonly JournalEvent[]): Promise<void> => barePubSub(client, PROJECT, events);
  const figures = await compare('pubsub', size, sink, bare, context);
  await client.close();
  checkTaken(await farSide.taken(), size);
  return figures;
}

/** Three sides have sent all events in each round and once to warm up. */
function checkTaken(taken: number, { events, rounds }: Size): void {
  const wanted = 3 * events * (rounds + 1);
  if (taken !== wanted) throw new Error(`the far side took ${taken} messages instead of ${wanted}`);
}

function make<Options>(module: SinkModule<Options>, options: object): Sink {
  return module.createSink(module.parseOptions(options), { name: 'bench', log: quiet, clock: systemClock });
}

/** Microseconds an event has taken: of time, and of CPU over all threads of this process. */
interface Cost {
  readonly time: number;
  readonly cpu: number;
}

async function compare(
  name: string,
  { journal, events: count, rounds }: Size,
  sink: () => Sink,
  send: (events: readonly JournalEvent[]) => Promise<void>,
  context: BenchContext,
): Promise<Figure[]> {
  const { bare, ...ours } = await inTurns(
    {
      // Made for each round: those of all rounds would slow down the contestants that do not send them.
      bare: () => {
        const events = makeEvents(count);
        return costOf(count, () => send(events));
      },
      /** The sink and the dispatcher, the events in memory as the SDK has them. */
      memory: () => played(new MemoryJournal(makeEvents(count)), sink()),
      /** The same, out of a journal on disk. */
      journal: () => played(journal, sink()),
    },
    { rounds, warmUp: 1, tell: ({ time }) => `${round(1e6 / time)}/s` },
    context,
  );
  const rate = (who: string, costs: readonly Cost[]): Figure => {
    return { name: `${name}, ${who}`, values: costs.map(({ time }) => 1e6 / time), unit: '/s', digits: 0 };
  };
  // How many times as much the bare SDK takes as we do: above 1 we take less.
  const share = (from: keyof typeof ours, wanted: Figure['wanted']): Figure[] => [
    rate(`from ${from}`, ours[from]),
    {
      name: `${name}, from ${from}, share of the SDK`,
      values: ratios(bare, ours[from], (at) => at.time),
      wanted,
    },
    { name: `${name}, from ${from}, by CPU`, values: ratios(bare, ours[from], ({ cpu }) => cpu) },
  ];
  return [rate('bare SDK', bare), ...share('memory', '≥ 0.95'), ...share('journal', '≥ 0.8')];
}

async function played(journal: FilledJournal | MemoryJournal, sink: Sink): Promise<Cost> {
  // Connected beforehand, as the SDK's own client is.
  await sink.open(AbortSignal.timeout(30_000));
  const closing: (() => Promise<void>)[] = [];
  const cost = await costOf(journal.count, async () => void closing.push(await journal.playTo(sink)));
  for (const close of closing) await close();
  return cost;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** What it costs to send so many events, without what earlier rounds have left behind. */
async function costOf(count: number, send: () => Promise<void>): Promise<Cost> {
  collectGarbage();
  const [started, used] = [performance.now(), process.cpuUsage()];
  await send();
  const time = (performance.now() - started) * 1000;
  const { user, system } = process.cpuUsage(used);
  return { time: time / count, cpu: (user + system) / count };
}

function makeEvents(count: number): JournalEvent[] {
  return Array.from({ length: count }, (_, n) =>
    contractEvent(n, { id: `made-up-${n}`, user: `user-${n % USERS}`, body: mealBody(n) }),
  );
}
