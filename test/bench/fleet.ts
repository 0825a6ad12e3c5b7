import { join } from 'node:path';
import { KafkaCluster, lacksKafka } from '../support/kafka/cluster.ts';
import { bench, type BenchContext, ROUNDS } from './bench.ts';
import { type Figure, round } from './figures.ts';
import { Load, NOWHERE, type ReceiverOptions, ReceiverProcess } from './ingest/children.ts';
import { cpuSecondsOf } from './processes.ts';
import { inTurns, ratios } from './rounds.ts';

const PARTITIONS = 12;

interface Lap {
  /** Of all that is done for an event, microseconds. */
  readonly cpu: number;
  /** Of that what is done while its file of the archive is open. */
  readonly open: number;
  readonly rate: number;
}

/** What a process takes for an event that only receives, and appends to a topic. */
export const fleet = bench(
  'a receiver of a fleet against one with a journal of its own; needs Apache Kafka',
  {
    rounds: ROUNDS,
    events: [20_000, 'events of each in a round'],
    connections: [256, 'keep-alive connections'],
  },
  async ({ rounds, events, connections }, context) => {
    const lack = lacksKafka();
    if (lack !== null) throw new Error(lack);
    const cluster = await KafkaCluster.start();
    context.atEnd(() => cluster.stop());
    const { journal, relay } = await topicsOf(cluster);
    const load = new Load(context);
    const all = {
      whole: await started('whole', {}, context),
      journal: await started('journal', { config: NOWHERE }, context),
      relay: await started('relay', { config: { sinks: { archive: relay } } }, context),
      fleet: await started('fleet', { config: { journal }, args: ['--role', 'receive'] }, context),
    };
    const measured = (name: string, receiver: ReceiverProcess) => async (): Promise<Lap> => {
      const { pid, port } = receiver;
      const from = cpuSecondsOf(pid);
      const used = (): number => ((cpuSecondsOf(pid) - from) * 1e6) / events;
      const { elapsedMs } = await load.run({ op: 'flood', port, connections });
      if (name === 'whole' || name === 'relay') await receiver.untilDelivered();
      const open = used();
      // A file takes the events of several laps, and each of them has its share in compressing it.
      if (name === 'whole') await receiver.flush();
      return { open, cpu: used(), rate: (events * 1000) / elapsedMs };
    };
    const contenders = Object.entries(all).map(([name, receiver]) => [name, measured(name, receiver)]);
    const laps = await inTurns<keyof typeof all, Lap>(
      Object.fromEntries(contenders),
      {
        rounds,
        warmUp: 1,
        begin: () => load.make(events),
        tell: ({ cpu, rate }) => `${round(cpu)} µs of CPU an event, ${round(rate)} a second`,
      },
      context,
    );
    await all.fleet.end();
    return figuresOf(laps);
  },
);

async function started(
  name: string,
  options: ReceiverOptions,
  { folder, atEnd }: BenchContext,
): Promise<ReceiverProcess> {
  const receiver = await ReceiverProcess.start(join(folder, name), options);
  atEnd(() => receiver.kill('SIGKILL'));
  return receiver;
}

function figuresOf(laps: Readonly<Record<string, readonly Lap[]>>): Figure[] {
  const { fleet: own = [], ...others } = laps;
  return [
    ...Object.entries(laps).map(([name, all]): Figure => {
      return { name: `${name}: CPU an event`, values: all.map(({ cpu }) => cpu), unit: ' µs', digits: 1 };
    }),
    {
      name: 'CPU of an event, as a share of whole while its file is open',
      values: ratios(own, others['whole'] ?? [], ({ open }) => open),
    },
    ...Object.entries(others).flatMap(([name, all]): Figure[] => [
      {
        name: `CPU of an event, as a share of ${name}`,
        values: ratios(own, all, ({ cpu }) => cpu),
        wanted: name === 'whole' || name === 'relay' ? '≤ 0.8' : undefined,
      },
      { name: `rate, as a share of ${name}`, values: ratios(own, all, ({ rate }) => rate) },
    ]),
  ];
}

/** Makes the topics. @returns the journal of a receiver of a fleet, and a sink that puts events there without one */
async function topicsOf({ oracle, addresses }: KafkaCluster): Promise<{ journal: object; relay: object }> {
  for (const topic of ['millrace.events', 'millrace.window', 'relayed'])
    await oracle.create(topic, PARTITIONS);
  for (const topic of ['millrace.quarantine', 'millrace.dead-letters'])
    await oracle.create(topic, 1, 1, 'cleanup.policy=compact');
  const kafka = { type: 'kafka', brokers: addresses, tls: { enabled: false } };
  return {
    journal: { ...kafka, path: undefined },
    relay: { ...kafka, topic: 'relayed', compression: 'never' },
  };
}
