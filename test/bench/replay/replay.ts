import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { archivedEvent, writeArchive } from '../../replay/made-up-archive.ts';
import buildMain from '../../support/build.ts';
import { lacksProgram } from '../../support/requirements.ts';
import type { Bench, BenchContext, BenchResult, Target } from '../bench.ts';
import { timed, type Timed } from '../ndjson/timed.ts';
import { median, rangeOf, round } from '../report.ts';

const TYPE = 'daily.data.meal.';
const FILES = 10;
const MOST_MIB = 300;

interface Options {
  readonly events: number;
  readonly rounds: number;
  /** Another tree's program; empty for this one's. */
  readonly main: string;
}

/** One way to find the events. */
interface Contender {
  readonly name: string;
  readonly lack: string | null;
  readonly command: readonly [string, ...string[]];
  /** Of what it has printed: how many it found. */
  readonly countOf: (output: string) => number;
  /** How many times as many lines a second a replay is to take; null when it is the replay. */
  readonly wanted: number | null;
  readonly runs: Timed[];
  found: number;
}

/** Archive lines a second through `millrace replay` with a filter, against the usual tools on the same files. */
export const replay: Bench = {
  summary: 'archive lines a second, filtered and replayed into nothing, beside zcat and jq',
  help: `Flags:
  --events N   lines of the archive (600000: some 520 MB, 60 MB as gzip)
  --rounds N   rounds of all contenders, one after the other (5)
  --main FILE  measure another program: a main.js or a src/main.ts
`,
  run: async (argv, context) => {
    const options = parseOptions(argv);
    const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
    const removeBuilt = options.main === '' ? await buildMain() : () => undefined;
    try {
      return await measure(folder, options, context);
    } finally {
      removeBuilt();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** @throws TypeError for a flag that is not known or has a value that it does not take */
function parseOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      events: { type: 'string', default: '600000' },
      rounds: { type: 'string', default: '5' },
      main: { type: 'string', default: '' },
    },
  });
  const [events, rounds] = [Number(values.events), Number(values.rounds)];
  for (const value of [events, rounds])
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError('numbers must be whole and above 0');
  return { events, rounds, main: values.main };
}

async function measure(
  folder: string,
  { events, rounds, main }: Options,
  { note, signal }: BenchContext,
): Promise<BenchResult> {
  const archive = join(folder, 'archive');
  note(`writing ${events} events`);
  writeArchive(archive, { files: FILES, each: Math.ceil(events / FILES), only: 'ndjson.gz' });
  const user = archivedEvent(9).user ?? '';
  const contenders = await contendersFor(folder, archive, user, main);
  const output = join(folder, 'output');
  for (let turn = 1; turn <= rounds; turn += 1) {
    for (const contender of contenders) {
      if (contender.lack !== null) continue;
      const run = await timed(contender.command, output, signal);
      contender.runs.push(run);
      contender.found = contender.countOf(await readFile(output, 'utf8'));
      note(`round ${turn}: ${contender.name} ${run.seconds.toFixed(2)} s`);
    }
  }
  return result(events, contenders);
}

async function contendersFor(
  folder: string,
  archive: string,
  user: string,
  main: string,
): Promise<[replay: Contender, ...others: Contender[]]> {
  const config = join(folder, 'millrace.yaml');
  await writeFile(
    config,
    JSON.stringify({
      signing: { secrets: [Buffer.alloc(24).toString('base64')] },
      journal: { path: join(folder, 'journal') },
      sinks: { nothing: { type: fileURLToPath(new URL('./null-sink.ts', import.meta.url)) } },
    }),
  );
  const files = (await readdir(archive)).map((name) => join(archive, name));
  const select = `select((.event_type | startswith("${TYPE}")) and .user_id == "${user}")`;
  const shell = (line: string): readonly [string, ...string[]] => {
    return ['bash', '-c', `set -o pipefail; ${line}`, 'bash', ...files];
  };
  const program = main === '' ? (process.env['MILLRACE_TEST_MAIN'] ?? '') : main;
  const flags = ['--to', 'nothing', '--type', TYPE, '--user', user, '--config', config, '--json'];
  return [
    {
      name: 'replay',
      lack: null,
      command: [process.execPath, program, 'replay', archive, ...flags],
      countOf: (text) => (JSON.parse(text) as { selected: number }).selected,
      wanted: null,
      runs: [],
      found: 0,
    },
    {
      name: 'zcat | wc',
      lack: lacksProgram('zcat'),
      command: shell('zcat "$@" | wc -l'),
      countOf: Number,
      wanted: 1.3,
      runs: [],
      found: 0,
    },
    {
      name: 'zcat | jq | wc',
      lack: lacksProgram('jq') ?? lacksProgram('zcat'),
      command: shell(`zcat "$@" | jq -c '${select}' | wc -l`),
      countOf: Number,
      wanted: 3,
      runs: [],
      found: 0,
    },
  ];
}

function result(events: number, [own, ...others]: readonly [Contender, ...Contender[]]): BenchResult {
  const rateOf = (seconds: readonly number[]): number => round(events / median(seconds));
  const row = ({ name, lack, runs, found }: Contender): [string, string] => {
    const seconds = runs.map((run) => run.seconds);
    const measured = `${rateOf(seconds)} lines/s (${rangeOf(seconds)} s), ${found} found`;
    return [name, lack === null ? measured : `skipped: ${lack}`];
  };
  const peak = round(Math.max(...own.runs.map(({ peakMiB }) => peakMiB ?? 0)));
  const cpu = round(median(own.runs.map(({ cpuSeconds }) => cpuSeconds ?? Number.NaN)), 2);
  const figures: Record<string, number | string> = { events, cpu_seconds: cpu, peak_mib: peak };
  const targets: Target[] = [];
  for (const { name, lack, runs, wanted } of others) {
    if (lack !== null) continue;
    // Of runs beside each other: what else the machine does meets both.
    const ratios = runs.map(({ seconds }, at) => seconds / (own.runs[at]?.seconds ?? Number.NaN));
    const ratio = round(median(ratios), 2);
    const measured = `${ratio} (${rangeOf(ratios)})`;
    figures[`ratio_to_${name.replaceAll(' | ', '_')}`] = ratio;
    targets.push({
      name: `lines a second, as a multiple of ${name}`,
      wanted: `≥ ${wanted}`,
      measured,
      met: ratio >= (wanted ?? 0),
    });
  }
  const jq = others.find(({ name, lack }) => name.includes('jq') && lack === null);
  if (jq !== undefined) {
    targets.push({
      name: 'events found, as jq finds them',
      wanted: String(jq.found),
      measured: String(own.found),
      met: jq.found === own.found,
    });
  }
  targets.push({
    name: 'peak resident memory',
    wanted: `< ${MOST_MIB} MiB`,
    measured: `${peak} MiB`,
    met: peak < MOST_MIB,
  });
  const rows = [...[own, ...others].map(row), ['processor time', `${cpu} s of replay`] as const];
  return { figures, rows, targets };
}
