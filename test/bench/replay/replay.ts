import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { archivedEvent, writeArchive } from '../../replay/made-up-archive.ts';
import { childEnvironment, MAIN } from '../../support/millrace.ts';
import { lacksProgram } from '../../support/requirements.ts';
import type { Bench, BenchContext, BenchResult, Target } from '../bench.ts';
import { median, round } from '../report.ts';

const run = promisify(execFile);
const TYPE = 'daily.data.meal.';
const FILES = 10;
const WANTED = 3;

/** One way to find the events; how many it found, and how long it took. */
interface Contender {
  readonly name: string;
  readonly lack: string | null;
  count(): Promise<number>;
}

/** Archive lines a second through `millrace replay` with a filter, against the usual tools on the same files. */
export const replay: Bench = {
  summary: 'archive lines a second, filtered and replayed into nothing, beside zcat and jq',
  help: `  --events N   lines of the archive (default 600000: some 520 MB, 50 MB as gzip)
  --rounds N   rounds of all contenders, one after the other (default 3)
`,
  async run(argv, context) {
    const { values } = parseArgs({
      args: [...argv],
      options: { events: { type: 'string', default: '600000' }, rounds: { type: 'string', default: '3' } },
    });
    const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
    try {
      return await measure(folder, Number(values.events), Number(values.rounds), context);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function measure(
  folder: string,
  events: number,
  rounds: number,
  { note, signal }: BenchContext,
): Promise<BenchResult> {
  const archive = join(folder, 'archive');
  note(`writing ${events} events`);
  writeArchive(archive, { files: FILES, each: Math.ceil(events / FILES), only: 'ndjson.gz' });
  const user = archivedEvent(9).user ?? '';
  const contenders = await contendersFor(folder, archive, user);
  const seconds = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  const found = new Map<string, number>();
  for (let turn = 1; turn <= rounds; turn += 1) {
    for (const { name, lack, count } of contenders) {
      if (lack !== null) continue;
      signal.throwIfAborted();
      const started = performance.now();
      found.set(name, await count());
      const took = (performance.now() - started) / 1000;
      seconds.get(name)?.push(took);
      note(`round ${turn}: ${name} ${took.toFixed(2)} s`);
    }
  }
  return result(events, contenders, seconds, found);
}

async function contendersFor(folder: string, archive: string, user: string): Promise<Contender[]> {
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
  const shell = async (line: string): Promise<number> => {
    const { stdout } = await run('bash', ['-c', `set -o pipefail; ${line}`, 'bash', ...files]);
    return Number(stdout);
  };
  return [
    {
      name: 'replay',
      lack: null,
      count: async () => {
        const args = ['replay', archive, '--to', 'nothing', '--type', TYPE, '--user', user];
        const { stdout } = await run(process.execPath, [MAIN, ...args, '--config', config, '--json'], {
          env: childEnvironment(),
        });
        return (JSON.parse(stdout) as { selected: number }).selected;
      },
    },
    { name: 'zcat | wc', lack: lacksProgram('zcat'), count: () => shell('zcat "$@" | wc -l') },
    {
      name: 'zcat | jq | wc',
      lack: lacksProgram('jq') ?? lacksProgram('zcat'),
      count: () => shell(`zcat "$@" | jq -c '${select}' | wc -l`),
    },
  ];
}

function result(
  events: number,
  contenders: readonly Contender[],
  seconds: ReadonlyMap<string, readonly number[]>,
  found: ReadonlyMap<string, number>,
): BenchResult {
  const linesPerSecond = (name: string): number => events / median(seconds.get(name) ?? []);
  const rows = contenders.map(({ name, lack }): [string, string] => [
    name,
    lack === null
      ? `${round(linesPerSecond(name))} lines/s, ${found.get(name) ?? 0} found`
      : `skipped: ${lack}`,
  ]);
  const ratio = linesPerSecond('replay') / linesPerSecond('zcat | jq | wc');
  const isMeasured = Number.isFinite(ratio);
  const targets: Target[] = [];
  if (isMeasured) {
    targets.push(
      {
        name: 'lines a second, as a multiple of jq',
        wanted: `≥ ${WANTED}`,
        measured: `${round(ratio, 2)}`,
        met: ratio >= WANTED,
      },
      {
        name: 'events found, as jq finds them',
        wanted: String(found.get('zcat | jq | wc')),
        measured: String(found.get('replay')),
        met: found.get('zcat | jq | wc') === found.get('replay'),
      },
    );
  }
  const figures = Object.fromEntries(
    contenders.map(({ name, lack }) => [
      `${name.replaceAll(' | ', '_')}_lines_per_second`,
      lack === null ? round(linesPerSecond(name)) : null,
    ]),
  );
  return { figures: { events, ...figures, ratio_to_jq: isMeasured ? round(ratio, 2) : null }, rows, targets };
}
