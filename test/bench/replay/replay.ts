import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { archivedEvent, writeArchive } from '../../replay/made-up-archive.ts';
import { writeConfig } from '../../support/millrace.ts';
import { lacksProgram } from '../../support/requirements.ts';
import { bench, MAIN_FLAG, ROUNDS } from '../bench.ts';
import type { Figure } from '../figures.ts';
import { figuresOfRuns, programOf, tellTime, type Timed, timed } from '../processes.ts';
import { inTurns, ratios } from '../rounds.ts';

const TYPE = 'daily.data.meal.';
const FILES = 10;

/** How many times as many lines a second a replay is to take. */
const WANTED = { 'zcat | wc': '≥ 1.3', 'zcat | jq | wc': '≥ 3' } as const;

/** Archive lines a second through `millrace replay` with a filter, against the usual tools on the same files. */
export const replay = bench(
  'archive lines a second, filtered and replayed into nothing, beside zcat and jq',
  { events: [600_000, 'lines of the archive: some 520 MB, 60 MB as gzip'], rounds: ROUNDS, main: MAIN_FLAG },
  async ({ events, rounds, main }, context) => {
    const { folder, note, signal } = context;
    const archive = join(folder, 'archive');
    note(`writing ${events} events`);
    writeArchive(archive, { files: FILES, each: Math.ceil(events / FILES), only: 'ndjson.gz' });
    const user = archivedEvent(9).user ?? '';
    const type = fileURLToPath(new URL('./null-sink.ts', import.meta.url));
    const config = writeConfig(folder, { sinks: { nothing: { type } } });
    const program = await programOf(main, context);
    const flags = ['--to', 'nothing', '--type', TYPE, '--user', user, '--config', config, '--json'];
    const output = join(folder, 'output');
    const found: Record<string, number> = {};
    const run =
      (name: string, command: readonly [string, ...string[]], countOf: (output: string) => number) =>
      async (): Promise<Timed> => {
        const took = await timed(command, output, signal);
        found[name] = countOf(await readFile(output, 'utf8'));
        return took;
      };
    const files = (await readdir(archive)).map((name) => join(archive, name));
    const shell = (name: keyof typeof WANTED, line: string): (() => Promise<Timed>) =>
      run(name, ['bash', '-c', `set -o pipefail; ${line}`, 'bash', ...files], Number);
    const select = `select((.event_type | startswith("${TYPE}")) and .user_id == "${user}")`;
    const contenders: Record<string, () => Promise<Timed>> = {
      replay: run(
        'replay',
        [process.execPath, program, 'replay', archive, ...flags],
        (text) => (JSON.parse(text) as { selected: number }).selected,
      ),
      'zcat | wc': shell('zcat | wc', 'zcat "$@" | wc -l'),
    };
    const lack = lacksProgram('jq');
    if (lack === null)
      contenders['zcat | jq | wc'] = shell('zcat | jq | wc', `zcat "$@" | jq -c '${select}' | wc -l`);
    else note(`jq is left out: ${lack}`);

    const { replay: own = [], ...others } = await inTurns(contenders, { rounds, tell: tellTime }, context);
    const figures = Object.entries(others).flatMap(([name, runs]): Figure[] => [
      { name: `${name}: time`, values: runs.map(({ seconds }) => seconds), unit: ' s' },
      {
        name: `lines a second, as a multiple of ${name}`,
        values: ratios(runs, own, ({ seconds }) => seconds),
        wanted: WANTED[name as keyof typeof WANTED],
      },
    ]);
    const { replay: selected = 0, 'zcat | jq | wc': byJq } = found;
    return [
      ...figuresOfRuns('replay', own, '< 300'),
      {
        name: 'events found, as jq finds them',
        values: [selected],
        wanted: byJq === undefined ? undefined : `= ${byJq}`,
      },
      ...figures,
    ];
  },
);
