import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lacksProgram } from '../../support/requirements.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { round } from '../report.ts';
import { buildAsShipped } from './as-shipped.ts';
import { makeDocument } from './make-document.ts';
import { type Measured, reportOf, type Run, type Size } from './report-sizes.ts';
import { timed, type Timed } from './timed.ts';

const DUCKDB = join(import.meta.dirname, 'duckdb-child.ts');

type Command = readonly [string, ...string[]];

interface Options {
  readonly sizes: readonly { readonly mb: number; readonly rounds: number }[];
  /** Another program; empty for this tree's. */
  readonly main: string;
  readonly folder: string;
}

/** `millrace ndjson` against jq and DuckDB on the same documents in the same run, and its memory. */
export const ndjson: Bench = {
  summary: 'meals and foods to files from bulk documents, as a multiple of jq and DuckDB; memory',
  help: `Flags:
  --mb LIST    sizes of the documents, MB; 1000:3 is one with 3 rounds (50,100,250,1000)
  --rounds N   rounds for each of the others, each round with every program once (5)
  --main FILE  measure another program: a main.js or a src/main.ts
  --folder DIR make the temporary folder here; needs about 4 times the largest document
`,
  run: async (argv, context) => {
    const options = parseOptions(argv);
    const place = await mkdtemp(join(options.folder, 'millrace-bench-'));
    const shipped = options.main === '' ? buildAsShipped() : null;
    try {
      const main = shipped?.main ?? options.main;
      const lack = lacksProgram('jq');
      if (lack !== null) context.note(`jq: left out, ${lack}`);
      const sizes: Size[] = [];
      for (const size of options.sizes) sizes.push(await measure(size, main, lack === null, place, context));
      return reportOf(sizes);
    } finally {
      shipped?.remove();
      await rm(place, { recursive: true, force: true });
    }
  },
};

/** @throws TypeError for a flag that is not known or has a value that it does not take */
function parseOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      mb: { type: 'string', default: '50,100,250,1000' },
      rounds: { type: 'string', default: '5' },
      main: { type: 'string', default: '' },
      folder: { type: 'string', default: tmpdir() },
    },
  });
  const sizes = values.mb.split(',').map((size) => {
    const [mb = '', rounds = values.rounds] = size.split(':');
    return { mb: Number(mb), rounds: Number(rounds) };
  });
  for (const value of sizes.flatMap(({ mb, rounds }) => [mb, rounds]))
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError('numbers must be whole and above 0');
  return { sizes, main: values.main, folder: values.folder };
}

/** Programs take turns, so that what else the machine does meets them all. The document is in the page cache. */
async function measure(
  { mb, rounds }: Options['sizes'][number],
  main: string,
  hasJq: boolean,
  place: string,
  { note, signal }: BenchContext,
): Promise<Size> {
  const document = join(place, 'meals.json');
  const { meals, bytes } = await makeDocument(document, mb * 1e6, signal);
  note(`document: ${round(bytes / 1e6)} MB, ${meals} meals`);
  const out = join(place, 'tables');
  const commands: Readonly<Record<Run, Command>> = {
    millrace: [process.execPath, main, 'ndjson', document, '--table', 'meals', '--out', out],
    jq: ['jq', '-c', '.meals[]', document],
    duckdb: [process.execPath, DUCKDB, document],
    duckdb_1_thread: [process.execPath, DUCKDB, document, '1'],
  };
  const runs: Measured = new Map();
  for (let at = 1; at <= rounds; at += 1) {
    const told: string[] = [];
    for (const name of Object.keys(commands) as Run[]) {
      if (name === 'jq' && !hasJq) continue;
      const run: Timed = await timed(commands[name], join(place, 'output'), signal);
      runs.set(name, [...(runs.get(name) ?? []), run]);
      told.push(`${name} ${round(run.seconds, 2)} s`);
    }
    note(`${mb} MB, round ${at}: ${told.join(', ')}`);
  }
  await expectMeals(join(out, 'meals.ndjson'), meals);
  await rm(document);
  return { mb, meals, bytes, runs };
}

/** A bench of a program that lost rows would measure nothing. */
async function expectMeals(file: string, wanted: number): Promise<void> {
  let lines = 0;
  for await (const rows of createReadStream(file) as AsyncIterable<Buffer>)
    for (let at = rows.indexOf(10); at !== -1; at = rows.indexOf(10, at + 1)) lines += 1;
  if (lines !== wanted) throw new Error(`${lines} rows came of ${wanted} meals`);
}
