import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { ReconcileReport } from '../../../src/reconcile/report.ts';
import buildMain from '../../support/build.ts';
import { writeConfig } from '../../support/millrace.ts';
import type { Bench, BenchContext, BenchResult } from '../bench.ts';
import { timed, type Timed } from '../ndjson/timed.ts';
import { median, rangeOf, round } from '../report.ts';
import { FIRST_RECEIVED, lastReceived, makeBoth } from './make-both.ts';

const LEAST_RATIO = 0.5;
const MOST_MIB = 500;

interface Options {
  readonly events: number;
  readonly files: number;
  readonly rounds: number;
  /** Another tree's program; empty for this one's. */
  readonly main: string;
  readonly folder: string;
}

type Rounds = readonly { readonly verify: Timed; readonly reconcile: Timed }[];

/** `millrace reconcile` against `millrace archive verify`, which reads the same archive and compares no ids. */
export const reconcile: Bench = {
  summary: 'events a second that reconcile accounts for, as a share of archive verify; memory',
  help: `Flags:
  --events N      events in the journal and in the archive (1000000)
  --files N       gzip files that hold them (20)
  --rounds N      rounds, each with both commands once (5)
  --main FILE     measure another program: a main.js or a src/main.ts
  --folder DIR    make the temporary folder here; needs about 1 KB for each event
`,
  run: async (argv, context) => {
    const options = parseOptions(argv);
    const place = await mkdtemp(join(options.folder, 'millrace-bench-'));
    const removeBuilt = options.main === '' ? await buildMain() : () => undefined;
    try {
      return report(options, await inRounds(place, options, context));
    } finally {
      removeBuilt();
      await rm(place, { recursive: true, force: true });
    }
  },
};

/** @throws TypeError for a flag that is not known or has a value that it does not take */
function parseOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      events: { type: 'string', default: '1000000' },
      files: { type: 'string', default: '20' },
      rounds: { type: 'string', default: '5' },
      main: { type: 'string', default: '' },
      folder: { type: 'string', default: tmpdir() },
    },
  });
  const [events, files, rounds] = [Number(values.events), Number(values.files), Number(values.rounds)];
  for (const value of [events, files, rounds])
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError('numbers must be whole and above 0');
  return { events, files, rounds, main: values.main, folder: values.folder };
}

/** The commands take turns, so that what else the machine does meets both. All files are in the page cache. */
async function inRounds(
  place: string,
  { events, files, rounds, main: other }: Options,
  { note, signal }: BenchContext,
): Promise<Rounds> {
  note(`writing ${events} events into a journal and an archive`);
  await makeBoth(place, { events, files }, signal);
  const config = writeConfig(place);
  const archive = join(place, 'archive');
  const output = join(place, 'output');
  const main = other === '' ? (process.env['MILLRACE_TEST_MAIN'] ?? '') : other;
  const run = (...args: readonly string[]): Promise<Timed> =>
    timed([process.execPath, main, ...args], output, signal);
  // Lists the files in a manifest.
  await run('archive', 'verify', '--repair', archive);
  const since = new Date(FIRST_RECEIVED).toISOString();
  const until = new Date(lastReceived(events) + 1).toISOString();
  const all: { verify: Timed; reconcile: Timed }[] = [];
  for (let at = 1; at <= rounds; at += 1) {
    const verified = await run('archive', 'verify', archive);
    const window = ['--since', since, '--until', until];
    const reconciled = await run('reconcile', '--config', config, ...window, '--json');
    const { sinks } = JSON.parse(await readFile(output, 'utf8')) as ReconcileReport;
    if (sinks[0]?.delivered !== events) throw new Error(`it accounts for ${sinks[0]?.delivered} events`);
    all.push({ verify: verified, reconcile: reconciled });
    note(`round ${at}: verify ${round(verified.seconds, 2)} s, reconcile ${round(reconciled.seconds, 2)} s`);
  }
  return all;
}

function report({ events }: Options, rounds: Rounds): BenchResult {
  const summary = (which: keyof Rounds[number]): { seconds: number; range: string; mib: number } => {
    const seconds = rounds.map((each) => each[which].seconds);
    const mib = Math.max(...rounds.map((each) => each[which].peakMiB ?? 0));
    return { seconds: round(median(seconds), 2), range: rangeOf(seconds), mib: round(mib) };
  };
  const verify = summary('verify');
  const reconciling = summary('reconcile');
  const ratios = rounds.map((each) => each.verify.seconds / each.reconcile.seconds);
  const cpu = rounds.map(
    (each) => (each.verify.cpuSeconds ?? Number.NaN) / (each.reconcile.cpuSeconds ?? Number.NaN),
  );
  const ratio = round(median(ratios), 2);
  const rateOf = (seconds: number): number => round(events / seconds);
  return {
    figures: {
      events,
      rounds: rounds.length,
      verify_seconds: verify.seconds,
      reconcile_seconds: reconciling.seconds,
      events_per_second: rateOf(reconciling.seconds),
      ratio,
      ratio_range: rangeOf(ratios),
      cpu_ratio: round(median(cpu), 2),
      peak_mib: reconciling.mib,
    },
    rows: [
      [
        'verify',
        `${verify.seconds} s (${verify.range}), ${rateOf(verify.seconds)} events/s, peak ${verify.mib} MiB`,
      ],
      [
        'reconcile',
        `${reconciling.seconds} s (${reconciling.range}), ${rateOf(reconciling.seconds)} events/s, peak ${reconciling.mib} MiB`,
      ],
      [
        'verify / reconcile',
        `${ratio} (${rangeOf(ratios)}) by the clock, ${round(median(cpu), 2)} in processor time`,
      ],
    ],
    targets: [
      {
        name: 'events a second, as a share of verify',
        wanted: `≥ ${LEAST_RATIO}`,
        measured: String(ratio),
        met: ratio >= LEAST_RATIO,
      },
      {
        name: 'peak resident memory',
        wanted: `< ${MOST_MIB} MiB`,
        measured: `${reconciling.mib} MiB`,
        met: reconciling.mib < MOST_MIB,
      },
    ],
  };
}
