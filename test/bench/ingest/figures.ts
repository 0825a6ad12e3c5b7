import type { BenchResult, Target } from '../bench.ts';
import { median, rangeOf, round } from '../report.ts';
import type { Contestant, Kept, Lap } from './contestant.ts';
import type { LoadResult } from './load-child.ts';
import type { MemoryFigures } from './memory.ts';
import type { IngestOptions } from './options.ts';

/** Requests a second at which p99 is compared with a rival's. */
export const FIXED_RATE = 2500;

/** Runs at a given rate that were made next to each other. */
export interface Latency {
  /** At half of the receiver's median rate. */
  readonly half: LoadResult;
  /** The same of the receiver that gives receipts; null when there is none. */
  readonly receipts: LoadResult | null;
  /** At `FIXED_RATE`, and the rival there; null when it is not measured. */
  readonly fixed: LoadResult | null;
  readonly rival: LoadResult | null;
}

export interface Measured {
  readonly options: IngestOptions;
  /** CPUs that this process may use. */
  readonly cores: number;
  /** The receiver first. */
  readonly all: readonly Contestant[];
  readonly latencies: readonly Latency[];
  readonly memory: MemoryFigures;
  readonly journalBytes: number;
  readonly kept: ReadonlyMap<Contestant, Kept | null>;
}

/** By `--body` and `--connections`: the share of each rival's rate that is wanted. */
const WANTED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  '1.2k 256': { express: 0.8, 'express-vf': 1.1, 'node-vf': 0.8 },
  '1.2k 64': { express: 0.65 },
  '10k 256': { 'go-vf': 0.6 },
  '100k 64': { 'go-vf': 0.6 },
};
const JOURNAL_BYTES = 1900;
/** Over fewer events a heap that still grows to its size cannot be told from one that leaks. */
const MEMORY_EVENTS = 2_000_000;

type Row = readonly [what: string, figure: string];

export function resultOf(measured: Measured): BenchResult {
  const { options, cores, all, latencies, memory, journalBytes, kept } = measured;
  const [receiver, ...others] = all as [Contestant, ...Contestant[]];
  const wanted = WANTED[`${options.body} ${options.connections}`] ?? {};
  const shares = others.map((other) => shareOf(receiver, other));
  const half = median(latencies.map((latency) => latency.half.p99));
  const pairs = latencies.flatMap(({ fixed, rival }) =>
    fixed === null || rival === null ? [] : [{ fixed, rival }],
  );
  const times = pairs.map(({ fixed, rival }) => fixed.p99 / rival.p99);
  const more = latencies.flatMap((one) => (one.receipts === null ? [] : [one.receipts.p99 - one.half.p99]));
  const growth = memory.lastMiB / memory.firstMiB - 1;

  const rows: Row[] = [
    [
      'machine',
      `${cores} cores, body ${options.body}, ${options.connections} connections, ${options.rounds} rounds`,
    ],
    ...all.map(({ name, laps }): Row => [
      name,
      `${spread(laps, 'rate')}/s, ${spread(laps, 'cpu')} µs of CPU an event`,
    ]),
    ['receiver until delivered', `${spread(receiver.laps, 'delivered')}/s`],
    ...shares.map((share): Row => [
      `receiver / ${share.name}`,
      `rate ${share.rate} (${share.rates}), CPU an event ${share.cpu} (${share.cpus})`,
    ]),
    [
      'p99 at half the rate',
      withRange(
        latencies.map((latency) => latency.half.p99),
        1,
        ' ms',
      ),
    ],
    ...(more.length === 0 ? [] : [['  more with receipts', withRange(more, 1, ' ms')] as const]),
    ...(pairs.length === 0
      ? []
      : [
          [
            `p99 at ${FIXED_RATE}/s`,
            withRange(
              pairs.map(({ fixed }) => fixed.p99),
              1,
              ' ms',
            ),
          ] as const,
          [
            '  of node-vf',
            withRange(
              pairs.map(({ rival }) => rival.p99),
              1,
              ' ms',
            ),
          ] as const,
        ]),
    ['memory', `${memory.firstMiB} → ${memory.lastMiB} MiB, slope ${memory.slopeMiBPerMinute} MiB/min`],
    ['bytes to disk an event, of the journal alone', String(round(journalBytes))],
  ];
  const targets: Target[] = [
    ...shares.flatMap(({ name, rate }) => {
      const least = wanted[name];
      return least === undefined ? [] : [atLeast(`share of ${name}`, rate, least)];
    }),
    ...(options.body === '1.2k' ? [atMost('p99 at half the rate, ms', half, 30, 1)] : []),
    ...(more.length === 0 ? [] : [atMost('p99 more with receipts, ms', median(more), 5, 1)]),
    ...(times.length === 0 ? [] : [atMost(`p99 at ${FIXED_RATE}/s, times node-vf`, median(times), 2, 2)]),
    ...(options.memory >= MEMORY_EVENTS
      ? [atMost('memory, last third against first, %', growth * 100, 10, 1)]
      : []),
    ...(options.body === '1.2k'
      ? [atMost('bytes of journal to disk an event', journalBytes, JOURNAL_BYTES, 0)]
      : []),
    ...others.flatMap((other) =>
      other.name === 'filled'
        ? [atLeast('rate with a filled journal', 1 / shareOf(receiver, other).rate, 0.9)]
        : other.name === 'traced'
          ? [atLeast('rate with traces', 1 / shareOf(receiver, other).rate, 0.98)]
          : other.name === 'receipts'
            ? [atLeast('rate with receipts', 1 / shareOf(receiver, other).rate, 0.95)]
            : other.name === 'no schema'
              ? [atLeast('rate with the schema memory', shareOf(receiver, other).rate, 0.97)]
              : [],
    ),
    ...[...kept].flatMap(([contestant, counts]) => (counts === null ? [] : [conserved(contestant, counts)])),
  ];
  return {
    figures: {
      cores,
      body: options.body,
      connections: options.connections,
      laps: Object.fromEntries(all.map(({ name, laps }) => [name, laps.map(rounded)])),
      shares: Object.fromEntries(shares.map((share) => [share.name, share])),
      p99_at_half_ms: latencies.map((latency) => round(latency.half.p99, 2)),
      p50_at_half_ms: latencies.map((latency) => round(latency.half.p50, 2)),
      p99_at_2500_ms: pairs.map(({ fixed, rival }) => [round(fixed.p99, 2), round(rival.p99, 2)]),
      p99_at_2500_times: times.map((ratio) => round(ratio, 2)),
      memory,
      journal_bytes_an_event: round(journalBytes),
    },
    rows,
    targets,
  };
}

/** The receiver's rate and CPU as multiples of another's, pair by pair. */
function shareOf(receiver: Contestant, other: Contestant) {
  const of = (what: keyof Lap): number[] =>
    receiver.laps.map((lap, index) => lap[what] / (other.laps[index]?.[what] ?? Number.NaN));
  const [rates, cpus] = [of('rate'), of('cpu')];
  return {
    name: other.name,
    rate: round(median(rates), 3),
    rates: rangeOf(rates),
    cpu: round(median(cpus), 2),
    cpus: rangeOf(cpus),
  };
}

function spread(laps: readonly Lap[], what: keyof Lap): string {
  return withRange(
    laps.map((lap) => lap[what]),
    0,
  );
}

function withRange(values: readonly number[], digits: number, unit = ''): string {
  return `${round(median(values), digits)}${unit} (${rangeOf(values, digits)})`;
}

function rounded({ rate, delivered, cpu }: Lap): Lap {
  return { rate: round(rate), delivered: round(delivered), cpu: round(cpu, 1) };
}

function conserved({ name, accepted }: Contestant, { records, ids }: Kept): Target {
  return {
    name: `records of ${name}`,
    wanted: `${accepted}, each once`,
    measured: `${records} with ${ids} ids`,
    met: records === accepted && ids === accepted,
  };
}

function atLeast(name: string, measured: number, wanted: number): Target {
  return { name, wanted: `≥ ${wanted}`, measured: round(measured, 2).toFixed(2), met: measured >= wanted };
}

function atMost(name: string, measured: number, wanted: number, digits: number): Target {
  return {
    name,
    wanted: `≤ ${wanted}`,
    measured: round(measured, digits).toFixed(digits),
    met: measured <= wanted,
  };
}
