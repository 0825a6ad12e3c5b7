import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Bench, BenchContext, BenchResult } from '../bench.ts';
import { fillJournal } from '../ingest/fill.ts';
import { median, round } from '../report.ts';
import { drain, latency, SINK, type Drained } from './drain.ts';

/** POSTs a second while it drains. */
const POSTS = 1000;
const LEAST_SHARE = 0.3;
const MOST_P99 = 2;

interface Options {
  readonly events: number;
  readonly users: number;
  readonly rounds: number;
  /** Seconds of POSTs while it drains; 0 leaves them out. */
  readonly seconds: number;
  /** Another tree's program, drained in the same rounds; empty for none. */
  readonly against: string;
  readonly folder: string;
  readonly profile: string | null;
}

type Kind = 'plain' | 'sealed';

interface Round {
  readonly plain: Drained;
  readonly sealed: Drained;
  /** The other program's. */
  readonly against: Readonly<Record<Kind, Drained>> | null;
  /** Milliseconds, while nothing and while a sealed sink drains. */
  readonly p99: { readonly idle: number; readonly sealed: number } | null;
}

/** A sealed archive against a plain one: what a receiver does that has to catch up. */
export const sealed: Bench = {
  summary: 'events a second into a sealed archive, as a share of a plain one; p99 of deliveries meanwhile',
  help: `Flags:
  --events N      events that wait in the journal (100000)
  --users N       users they are of (1000)
  --rounds N      rounds, each with every kind once (5)
  --seconds N     POSTs, ${POSTS} a second, for so long while it drains; 0 for none (1)
  --against FILE  also drain another program in the same rounds: a main.js or a src/main.ts
  --folder DIR    make the temporary folder here; needs about 6 KB for each event
  --profile DIR   write a CPU profile of each thread of each receiver to this folder
`,
  run: async (argv, context) => {
    const options = parseOptions(argv);
    const place = await mkdtemp(join(options.folder, 'millrace-bench-'));
    try {
      return report(options, await inRounds(place, options, context));
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  },
};

/** @throws TypeError for a flag that is not known or has a value that it does not take */
function parseOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      events: { type: 'string', default: '100000' },
      users: { type: 'string', default: '1000' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '1' },
      against: { type: 'string', default: '' },
      folder: { type: 'string', default: tmpdir() },
      profile: { type: 'string' },
    },
  });
  const number = (name: 'events' | 'users' | 'rounds' | 'seconds', least: number): number => {
    const value = Number(values[name]);
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw new TypeError(`--${name} must be a whole number, ${least} or more`);
  };
  const { against, folder, profile = null } = values;
  return {
    events: number('events', 1),
    users: number('users', 1),
    rounds: number('rounds', 1),
    seconds: number('seconds', 0),
    against,
    folder,
    profile,
  };
}

async function inRounds(
  place: string,
  { events, users, rounds, seconds, against, profile }: Options,
  { note, signal }: BenchContext,
): Promise<readonly Round[]> {
  const journal = join(place, 'journal');
  await fillJournal(journal, events, () => undefined, signal, { sink: SINK, users });
  note(`${events} events wait`);
  const orderOf = (isSealed: boolean, main?: string): Parameters<typeof drain>[0] => {
    signal.throwIfAborted();
    return { journal, events, sealed: isSealed, main, folder: join(place, 'receiver'), profile };
  };
  const all: Round[] = [];
  for (let at = 1; at <= rounds; at += 1) {
    const other =
      against === ''
        ? null
        : { plain: await drain(orderOf(false, against)), sealed: await drain(orderOf(true, against)) };
    const own = { plain: await drain(orderOf(false)), sealed: await drain(orderOf(true)) };
    const p99 = seconds === 0 ? null : await p99s(orderOf, seconds);
    all.push({ ...own, against: other, p99 });
    const beside = other === null ? '' : `, the other program ${round(other.sealed.perSecond)}/s`;
    note(
      `round ${at}: sealed ${round(own.sealed.perSecond)}/s, plain ${round(own.plain.perSecond)}/s${beside}`,
    );
  }
  return all;
}

async function p99s(
  orderOf: (sealed: boolean) => Parameters<typeof drain>[0],
  seconds: number,
): Promise<{ idle: number; sealed: number }> {
  const idle = await latency({ ...orderOf(true), journal: null }, POSTS, seconds);
  return { idle, sealed: await latency(orderOf(true), POSTS, seconds) };
}

function report({ events }: Options, rounds: readonly Round[]): BenchResult {
  const share = rounds.map((each) => each.sealed.perSecond / each.plain.perSecond);
  const p99 = rounds.flatMap((each) => each.p99 ?? []);
  const p99Ratio = p99.map((each) => each.sealed / each.idle);
  const others = rounds.flatMap(({ against, ...own }) => (against === null ? [] : [{ own, against }]));
  const gain = (kind: Kind, of: (drained: Drained) => number): string =>
    summary(others.map(({ own, against }) => of(own[kind]) / of(against[kind])));
  const drains: Record<string, ReturnType<typeof figuresOf>> = {
    sealed: figuresOf(rounds.map((each) => each.sealed)),
    plain: figuresOf(rounds.map((each) => each.plain)),
  };
  if (others.length > 0) {
    drains['other_sealed'] = figuresOf(others.map(({ against }) => against.sealed));
    drains['other_plain'] = figuresOf(others.map(({ against }) => against.plain));
  }
  const figures = {
    share: summary(share),
    sealed_gain: gain('sealed', rateOf),
    plain_gain: gain('plain', rateOf),
    sealed_main_thread_ratio: gain('sealed', ({ mainUs }) => mainUs),
    plain_main_thread_ratio: gain('plain', ({ mainUs }) => mainUs),
    p99_ms: { idle: summary(p99.map((each) => each.idle)), sealed: summary(p99.map((each) => each.sealed)) },
    p99_ratio: summary(p99Ratio),
  };
  return {
    figures: { events, rounds: rounds.length, ...drains, ...figures },
    rows: [
      ...Object.entries(drains).map(([name, each]) => [name, rowOf(each)] as const),
      ['sealed / plain', figures.share],
      ['gain over the other program', `sealed ${figures.sealed_gain}, plain ${figures.plain_gain}`],
      [
        `p99 of ${POSTS} POSTs a second`,
        `${figures.p99_ms.sealed} ms, with nothing to drain ${figures.p99_ms.idle} ms`,
      ],
    ],
    targets: [
      {
        name: 'sealed, as a share of plain',
        wanted: `≥ ${LEAST_SHARE}`,
        measured: figures.share,
        met: median(share) >= LEAST_SHARE,
      },
      ...(p99.length === 0
        ? []
        : [
            {
              name: 'p99 while it drains, against nothing to drain',
              wanted: `≤ ${MOST_P99}`,
              measured: figures.p99_ratio,
              met: median(p99Ratio) <= MOST_P99,
            },
          ]),
    ],
  };
}

function figuresOf(runs: readonly Drained[]) {
  return {
    per_second: summary(runs.map(rateOf), 0),
    main_thread_us: summary(runs.map(({ mainUs }) => mainUs)),
    all_threads_us: summary(runs.map(({ allUs }) => allUs)),
    first_mib: summary(
      runs.map(({ memory }) => memory.firstMiB),
      0,
    ),
    last_mib: summary(
      runs.map(({ memory }) => memory.lastMiB),
      0,
    ),
  };
}

function rowOf({
  per_second,
  main_thread_us,
  all_threads_us,
  first_mib,
  last_mib,
}: ReturnType<typeof figuresOf>) {
  return `${per_second}/s; CPU µs: ${main_thread_us} receiving thread, ${all_threads_us} all; MiB: ${first_mib} → ${last_mib}`;
}

function rateOf({ perSecond }: Drained): number {
  return perSecond;
}

/** Median and range. */
function summary(values: readonly number[], digits = 2): string {
  if (values.length === 0) return '-';
  return `${round(median(values), digits)} (${round(Math.min(...values), digits)} to ${round(Math.max(...values), digits)})`;
}
