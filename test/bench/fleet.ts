import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { KafkaCluster, lacksKafka } from '../support/kafka/cluster.ts';
import type { Bench, BenchContext, BenchResult } from './bench.ts';
import { Load, ReceiverProcess } from './ingest/children.ts';
import { newSecret } from './ingest/requests.ts';
import { median, rangeOf, round } from './report.ts';

const HELP = `Flags:
  --rounds N       rounds (default 5)
  --events N       events of each in a round (default 20000)
  --connections N  keep-alive connections (default 256)
  --before MAIN    also measures src/main.ts of another tree, as a receiver of the fleet
  --profile DIR    the receiver of the fleet writes a CPU profile here
`;
const PARTITIONS = 12;
const WANTED = 0.8;

/** Of the whole receiver, of one that routes nothing, of one whose sink is a topic, and of receivers of a fleet. */
type Name = 'whole' | 'journal' | 'relay' | 'fleet' | 'before';

interface Lap {
  /** Of all that is done for an event, microseconds. */
  readonly cpu: number;
  /** Of that what is done while its file of the archive is open. */
  readonly open: number;
  readonly rate: number;
}

/** What a process takes for an event that only receives, and appends to a topic. */
export const fleet: Bench = {
  summary: 'a receiver of a fleet against one with a journal of its own; needs Apache Kafka',
  help: HELP,
  run: async (argv, context) => {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({
      args: [...argv],
      options: { rounds: text, events: text, connections: text, before: text, profile: text },
    });
    const [rounds, events, connections] = [
      Number(values.rounds ?? 5),
      Number(values.events ?? 20_000),
      Number(values.connections ?? 256),
    ];
    if (![rounds, events, connections].every((each) => Number.isInteger(each) && each > 0))
      throw new TypeError('--rounds, --events and --connections must be whole numbers above 0');
    const lack = lacksKafka();
    if (lack !== null) throw new Error(lack);
    const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
    const cleanups: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
    try {
      const cluster = await KafkaCluster.start();
      cleanups.unshift(() => cluster.stop());
      const journal = await topicsOf(cluster);
      const secret = newSecret();
      const load = new Load();
      cleanups.unshift(() => load.stop());
      const start = async (name: Name, more: object): Promise<ReceiverProcess> => {
        const own = join(folder, name);
        mkdirSync(own);
        const receiver = await ReceiverProcess.start({ folder: own, secret, profile: null, ...more });
        cleanups.unshift(() => receiver.kill());
        return receiver;
      };
      const all = new Map<Name, ReceiverProcess>([
        ['whole', await start('whole', {})],
        ['journal', await start('journal', { routed: false })],
        ['relay', await start('relay', { sink: topicSink(cluster) })],
        ['fleet', await start('fleet', { journal, profile: values.profile ?? null })],
      ]);
      if (values.before !== undefined)
        all.set('before', await start('before', { journal, main: values.before }));
      const laps = await run({ all, load, secret, rounds, events, connections }, context);
      if (values.profile !== undefined)
        await all
          .get('fleet')
          ?.settle()
          .catch(() => null);
      return resultOf(laps);
    } finally {
      for (const cleanup of cleanups) await cleanup();
    }
  },
};

interface Run {
  readonly all: ReadonlyMap<Name, ReceiverProcess>;
  readonly load: Load;
  readonly secret: string;
  readonly rounds: number;
  readonly events: number;
  readonly connections: number;
}

/** Each begins a round in turn; the first round warms up, and does not count. */
async function run(
  { all, load, secret, rounds, events, connections }: Run,
  { note, signal }: BenchContext,
): Promise<ReadonlyMap<Name, readonly Lap[]>> {
  const laps = new Map<Name, Lap[]>(Array.from(all.keys(), (name) => [name, []]));
  const names = [...all.keys()];
  for (let round_ = 0; round_ <= rounds; round_ += 1) {
    await load.make(events, secret);
    for (let n = 0; n < names.length; n += 1) {
      signal.throwIfAborted();
      const name = names[(round_ + n) % names.length] ?? 'fleet';
      const receiver = all.get(name);
      if (receiver === undefined) continue;
      const before = receiver.cpuSeconds();
      const { elapsedMs } = await load.run({ op: 'flood', port: receiver.port, connections });
      if (name === 'whole' || name === 'relay') await receiver.untilDelivered();
      const open = ((receiver.cpuSeconds() - before) * 1e6) / events;
      // A file takes the events of several laps, and each of them has its share in compressing it.
      if (name === 'whole') await receiver.flush();
      const cpu = ((receiver.cpuSeconds() - before) * 1e6) / events;
      const rate = (events * 1000) / elapsedMs;
      note(`round ${round_}: ${name} ${round(cpu)} µs of CPU an event, ${round(rate)} a second`);
      if (round_ > 0) laps.get(name)?.push({ cpu, open, rate });
    }
  }
  return laps;
}

function resultOf(laps: ReadonlyMap<Name, readonly Lap[]>): BenchResult {
  const own = laps.get('fleet') ?? [];
  const against = (name: Name, figure: keyof Lap): number[] =>
    own.map((lap, index) => lap[figure] / (laps.get(name)?.[index]?.[figure] ?? Number.NaN));
  const open = against('whole', 'open');
  const others = [...laps.keys()].filter((name) => name !== 'fleet');
  const shares = others.map((name) => [name, against(name, 'cpu'), against(name, 'rate')] as const);
  return {
    figures: {
      ...Object.fromEntries(
        shares.map(([name, cpu]) => [`cpu_of_${name}`, cpu.map((each) => round(each, 2))]),
      ),
      cpu_of_whole_open: open.map((each) => round(each, 2)),
      cpu_us: Object.fromEntries(
        Array.from(laps, ([name, all]) => [name, all.map(({ cpu }) => round(cpu, 1))]),
      ),
    },
    rows: [
      ...Array.from(laps, ([name, all]) => {
        const cpus = all.map(({ cpu }) => cpu);
        return [`${name}: CPU an event`, `${round(median(cpus), 1)} µs (${rangeOf(cpus, 0)})`] as const;
      }),
      [
        'CPU, as a share of whole while its file is open',
        `${round(median(open), 2)} (${rangeOf(open)})`,
      ] as const,
      ...shares.flatMap(([name, cpu, rate]) => [
        [`CPU, as a share of ${name}`, `${round(median(cpu), 2)} (${rangeOf(cpu)})`] as const,
        [`rate, as a share of ${name}`, `${round(median(rate), 2)} (${rangeOf(rate)})`] as const,
      ]),
    ],
    targets: (['whole', 'relay'] as const).map((name) => {
      const share = median(against(name, 'cpu'));
      return {
        name: `CPU of an event, as a share of ${name}`,
        wanted: `≤ ${WANTED}`,
        measured: String(round(share, 2)),
        met: share <= WANTED,
      };
    }),
  };
}

/** A sink that puts the events into another topic of the same broker, as a receiver of a fleet does without a journal. */
function topicSink({ addresses }: KafkaCluster): object {
  return {
    type: 'kafka',
    path: undefined,
    brokers: addresses,
    tls: { enabled: false },
    topic: 'relayed',
    compression: 'never',
  };
}

/** Makes the topics. @returns the journal of a config */
async function topicsOf({ oracle, addresses }: KafkaCluster): Promise<object> {
  for (const topic of ['millrace.events', 'millrace.window', 'relayed'])
    await oracle.create(topic, PARTITIONS);
  for (const topic of ['millrace.quarantine', 'millrace.dead-letters'])
    await oracle.create(topic, 1, 1, 'cleanup.policy=compact');
  return { type: 'kafka', brokers: addresses, tls: { enabled: false } };
}
