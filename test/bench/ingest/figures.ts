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
  /** The receiver first, then its rivals. */
  readonly all: readonly Contestant[];
  /** Receivers that are set up otherwise. */
  readonly variants: readonly Contestant[];
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
/** By variant: what its rate has to be as a share of the receiver's, or the receiver's of that of one that does less. */
const WANTED_BESIDE: Readonly<Record<string, readonly [what: string, least: number, doesLess?: true]>> = {
  filled: ['rate with a filled journal', 0.9],
  traced: ['rate with traces', 0.98],
  receipts: ['rate with receipts', 0.95],
  'no schema': ['rate with the schema memory', 0.97, true],
};
const JOURNAL_BYTES = 1900;
/** Over fewer events a heap that still grows to its size cannot be told from one that leaks. */
const MEMORY_EVENTS = 2_000_000;

type Row = readonly [what: string, figure: string];

export function resultOf(measured: Measured): BenchResult {
  const { options, cores, all, variants, latencies, memory, journalBytes, kept } = measured;
  const [receiver, ...others] = all as [Contestant, ...Contestant[]];
  const wanted = WANTED[`${options.body} ${options.connections}`] ?? {};
  const shares = others.map(({ name, laps, beside }) => ({ name, ...shareOf(beside, laps) }));
  const turns = variants.map(({ name, laps, beside, turns: rates }) => {
    const [what, least, doesLess = false] = WANTED_BESIDE[name] ?? [];
    const [of, to] = doesLess ? [beside, laps] : [laps, beside];
    return {
      name: doesLess ? `receiver / ${name}` : `${name} / receiver`,
      ...turnsOf(of, to, doesLess ? rates.map((rate) => 1 / rate) : rates),
      what,
      least,
    };
  });
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
    ...[...all, ...variants].map(({ name, laps }): Row => [
      name,
      `${spread(laps, 'rate')}/s, ${spread(laps, 'cpu')} µs of CPU an event`,
    ]),
    ['receiver until delivered', `${spread(receiver.laps, 'delivered')}/s`],
    ...shares.map((share): Row => [
      `receiver / ${share.name}`,
      `rate ${share.rate} (${share.rates}), CPU an event ${share.cpu} (${share.cpus})`,
    ]),
    ...turns.map((turn): Row => [
      turn.name,
      `rate ${turn.rate} (${turn.rates}; of ${turn.count} times two turns ${turn.byTurn}, ${turn.byTurns}), CPU an event ${turn.cpu} (${turn.cpus}), of the receiving thread ${turn.thread} (${turn.threads})`,
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
    ...turns.flatMap(({ what, least, rate }) =>
      what === undefined || least === undefined ? [] : [atLeast(what, rate, least)],
    ),
    ...[...kept].flatMap(([contestant, counts]) => (counts === null ? [] : [conserved(contestant, counts)])),
  ];
  return {
    figures: {
      cores,
      body: options.body,
      connections: options.connections,
      laps: Object.fromEntries([...all, ...variants].map(({ name, laps }) => [name, laps.map(rounded)])),
      beside: Object.fromEntries(variants.map(({ name, beside }) => [name, beside.map(rounded)])),
      shares: Object.fromEntries(shares.map((share) => [share.name, share])),
      turns: Object.fromEntries(turns.map((turn) => [turn.name, turn])),
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

/** Rates and CPU as multiples of others, round by round. */
function shareOf(laps: readonly Lap[], to: readonly Lap[]) {
  const of = (what: keyof Lap): number[] =>
    laps.map((lap, index) => lap[what] / (to[index]?.[what] ?? Number.NaN));
  const [rates, cpus] = [of('rate'), of('cpu')];
  return {
    rate: round(median(rates), 3),
    rates: rangeOf(rates),
    cpu: round(median(cpus), 3),
    cpus: rangeOf(cpus),
  };
}

/** The same of two receivers that took turns. */
function turnsOf(laps: readonly Lap[], to: readonly Lap[], rates: readonly number[]) {
  const threads = laps.map(({ thread }, index) => thread / (to[index]?.thread ?? Number.NaN));
  return {
    ...shareOf(laps, to),
    byTurn: round(median(rates), 3),
    byTurns: rangeOf(rates),
    count: rates.length,
    thread: round(median(threads), 3),
    threads: rangeOf(threads),
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

function rounded({ rate, delivered, cpu, thread }: Lap): Lap {
  return { rate: round(rate), delivered: round(delivered), cpu: round(cpu, 1), thread: round(thread, 1) };
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
