import { type Figure, thirdsOf } from '../figures.ts';
import { ratios } from '../rounds.ts';
import type { Lap, Turns } from './contestant.ts';
import type { LoadResult } from './load-child.ts';

/** Requests a second at which p99 is compared with a rival's. */
export const FIXED_RATE = 2500;

/** Runs at a given rate, by round: `half` of the receiver's median rate, with `receipts`; `fixed`, and the `rival` there. */
export type Latencies = Readonly<Record<string, readonly LoadResult[]>>;

interface Measured {
  readonly body: string;
  readonly connections: number;
  /** Events over which memory was watched; 0 for the rounds. */
  readonly memory: number;
  /** By name: the receiver and its rivals. */
  readonly laps: Readonly<Record<'receiver', readonly Lap[]>> & Readonly<Record<string, readonly Lap[]>>;
  /** Receivers that are set up otherwise. */
  readonly turns: Readonly<Record<string, readonly Turns[]>>;
  readonly latencies: Latencies;
  /** Resident memory, MiB. */
  readonly samples: readonly number[];
  readonly journalBytes: number;
  readonly kept: Readonly<Record<string, { accepted: number; records: number; ids: number }>>;
}

/** By `--body` and `--connections`: the share of each rival's rate that is wanted. */
const WANTED: Readonly<Record<string, Readonly<Record<string, Figure['wanted']>>>> = {
  '1.2k 256': {
    express: '≥ 0.8',
    'express-vf': '≥ 1.1',
    'node-vf': '≥ 0.8',
    'svix-bridge': '≥ 3',
    bento: '≥ 8',
  },
  '1.2k 64': { express: '≥ 0.65' },
  '10k 256': { 'go-vf': '≥ 0.6' },
  '100k 64': { 'go-vf': '≥ 0.6' },
};
/** By variant: what its rate has to be as a share of the receiver's, or the receiver's of that of one that does less. */
const BESIDE: Readonly<Record<string, { what: string; wanted?: Figure['wanted']; doesLess?: true }>> = {
  before: { what: 'the program before / receiver' },
  receipts: { what: 'with receipts', wanted: '≥ 0.95' },
  'no schema': { what: 'with the schema memory', wanted: '≥ 0.97', doesLess: true },
};
/** Over fewer events a heap that is still growing looks like one that leaks. */
const MEMORY_EVENTS = 2_000_000;

export function figuresOf(measured: Measured): Figure[] {
  const { body, connections, memory, laps, turns, latencies, samples, journalBytes, kept } = measured;
  const { receiver, ...rivals } = laps;
  const isUsual = body === '1.2k';
  const [first, , last] = thirdsOf(samples);
  return [
    ...Object.entries(laps).flatMap(([name, each]): Figure[] => [
      { name: `${name}: answers`, values: each.map(({ rate }) => rate), unit: '/s', digits: 0 },
      { name: `${name}: CPU an event`, values: each.map(({ cpu }) => cpu), unit: ' µs', digits: 0 },
    ]),
    {
      name: 'receiver: events until the last is delivered',
      values: receiver.map(({ delivered }) => delivered),
      unit: '/s',
      digits: 0,
    },
    ...Object.entries(rivals).flatMap(([name, each]): Figure[] => [
      {
        name: `rate, as a share of ${name}`,
        values: ratios(receiver, each, ({ rate }) => rate),
        wanted: WANTED[`${body} ${connections}`]?.[name],
      },
      { name: `CPU an event, as a share of ${name}`, values: ratios(receiver, each, ({ cpu }) => cpu) },
    ]),
    ...Object.entries(turns).flatMap(([name, each]) => besideOf(name, each)),
    ...latenciesOf(latencies, isUsual),
    { name: 'memory, first third', values: [first], unit: ' MiB', digits: 1 },
    { name: 'memory, last third', values: [last], unit: ' MiB', digits: 1 },
    {
      name: 'memory, last third against first',
      values: [(last / first - 1) * 100],
      unit: ' %',
      digits: 1,
      wanted: memory >= MEMORY_EVENTS ? '≤ 10' : undefined,
    },
    {
      name: 'bytes of journal to disk an event',
      values: [journalBytes],
      digits: 0,
      wanted: isUsual ? '≤ 1900' : undefined,
    },
    ...Object.entries(kept).flatMap(([name, { accepted, records, ids }]): Figure[] => [
      { name: `records of ${name}`, values: [records], wanted: `= ${accepted}` },
      { name: `ids of ${name}`, values: [ids], wanted: `= ${accepted}` },
    ]),
  ];
}

/** Of two receivers that took turns, and of each two turns. */
function besideOf(name: string, turns: readonly Turns[]): Figure[] {
  const { what = name, wanted, doesLess = false } = BESIDE[name] ?? {};
  const [own, others] = [turns.map(({ lap }) => lap), turns.map(({ beside }) => beside)];
  const share = (of: (lap: Lap) => number): number[] =>
    doesLess ? ratios(others, own, of) : ratios(own, others, of);
  const byTurn = turns.flatMap(({ rates }) => rates).map((rate) => (doesLess ? 1 / rate : rate));
  return [
    { name: `rate ${what}`, values: share(({ rate }) => rate), digits: 3, wanted },
    { name: `rate ${what}, of each two turns`, values: byTurn, digits: 3 },
    { name: `CPU an event ${what}`, values: share(({ cpu }) => cpu), digits: 3 },
    { name: `CPU of the receiving thread ${what}`, values: share(({ thread }) => thread), digits: 3 },
  ];
}

function latenciesOf({ half = [], receipts, fixed, rival }: Latencies, isUsual: boolean): Figure[] {
  const ms = { unit: ' ms', digits: 1 };
  const p99 = (results: Latencies[string]): number[] => results.map((result) => result.p99);
  const figures: Figure[] = [
    { name: 'p50 at half the rate', values: half.map(({ p50 }) => p50), ...ms },
    { name: 'p99 at half the rate', values: p99(half), ...ms, wanted: isUsual ? '≤ 30' : undefined },
  ];
  if (receipts !== undefined) {
    const more = receipts.map((result, at) => result.p99 - (half[at]?.p99 ?? Number.NaN));
    figures.push({ name: 'p99 more with receipts', values: more, ...ms, wanted: '≤ 5' });
  }
  if (fixed !== undefined && rival !== undefined)
    figures.push(
      { name: `p99 at ${FIXED_RATE}/s`, values: p99(fixed), ...ms },
      { name: `p99 at ${FIXED_RATE}/s of node-vf`, values: p99(rival), ...ms },
      {
        name: `p99 at ${FIXED_RATE}/s, times node-vf`,
        values: ratios(fixed, rival, (result) => result.p99),
        wanted: '≤ 2',
      },
    );
  return figures;
}
