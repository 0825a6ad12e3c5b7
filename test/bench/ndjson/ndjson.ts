import { execFileSync } from 'node:child_process';
import { copyFileSync, createReadStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { countLines } from '../../../src/lib/lines.ts';
import { ROOT } from '../../support/millrace.ts';
import { lacksProgram } from '../../support/requirements.ts';
import { everyMeal } from '../archives.ts';
import { bench, type BenchContext, FOLDER, MAIN_FLAG, ROUNDS } from '../bench.ts';
import type { Figure } from '../figures.ts';
import { figuresOfRuns, multiplesOf, tellTime, type Timed, timed } from '../processes.ts';
import { inTurns } from '../rounds.ts';

const DUCKDB = join(import.meta.dirname, 'duckdb-child.ts');
const PIECE = 1024 * 1024;
/** 120 MB. */
const MOST_MIB = '< 114.4';
const WANTED: Readonly<Record<string, Figure['wanted']>> = {
  jq: '≥ 5',
  duckdb: '≥ 4',
  duckdb_1_thread: '≥ 4',
};

/** `millrace ndjson` against jq and DuckDB on the same documents in the same run, and its memory. */
export const ndjson = bench(
  'meals and foods to files from bulk documents, as a multiple of jq and DuckDB; memory',
  {
    mb: ['50,100,250,1000', 'sizes of the documents, MB; 1000:3 is one with 3 rounds'],
    rounds: ROUNDS,
    main: MAIN_FLAG,
    folder: ['', `${FOLDER[1]}; needs about 4 times the largest document`],
  },
  async ({ mb: list, rounds, main }, context) => {
    const sizes = list.split(',').map((size) => {
      const [mb, own = rounds] = size.split(':').map(Number);
      return { mb: mb ?? 0, rounds: own };
    });
    if (!sizes.flatMap(Object.values).every((number) => Number.isSafeInteger(number) && number > 0))
      throw new TypeError('--mb is a list of whole numbers above 0');
    const program = main === '' ? buildAsShipped(context) : main;
    const lack = lacksProgram('jq');
    if (lack !== null) context.note(`jq: left out, ${lack}`);
    const figures: Figure[] = [];
    for (const size of sizes) figures.push(...(await measure(size, program, lack === null, context)));
    return figures;
  },
);

/** The document is in the page cache. */
async function measure(
  { mb, rounds }: { readonly mb: number; readonly rounds: number },
  main: string,
  hasJq: boolean,
  context: BenchContext,
): Promise<Figure[]> {
  const { folder, note, signal } = context;
  const document = join(folder, 'meals.json');
  const meals = await makeDocument(document, mb * 1e6, signal);
  note(`${mb} MB: ${meals} meals`);
  const out = join(folder, 'tables');
  const run =
    (...command: readonly [string, ...string[]]) =>
    (): Promise<Timed> =>
      timed(command, join(folder, 'output'), signal);
  const contenders: Record<string, () => Promise<Timed>> = {
    millrace: run(process.execPath, main, 'ndjson', document, '--table', 'meals', '--out', out),
    ...(hasJq ? { jq: run('jq', '-c', '.meals[]', document) } : {}),
    duckdb: run(process.execPath, DUCKDB, document),
    duckdb_1_thread: run(process.execPath, DUCKDB, document, '1'),
  };
  const { millrace = [], ...others } = await inTurns(contenders, { rounds, tell: tellTime }, context);
  await expectMeals(join(out, 'meals.ndjson'), meals);
  await rm(document);
  return [
    ...figuresOfRuns(`${mb} MB: millrace`, millrace, MOST_MIB),
    ...Object.entries(others).flatMap(([name, runs]) => [
      ...figuresOfRuns(`${mb} MB: ${name}`, runs),
      ...multiplesOf(`${mb} MB: meals and foods, as a multiple of ${name}`, millrace, runs, WANTED[name]),
    ]),
  ];
}

/** Writes `{"meals":[…]}` of at least this size. @returns how many meals */
async function makeDocument(path: string, size: number, signal: AbortSignal): Promise<number> {
  await using file = await open(path, 'w');
  let bytes = 0;
  let meals = 0;
  let piece = '{"meals":[';
  for (const { meal } of everyMeal(3650)) {
    piece += `${meals === 0 ? '' : ','}${JSON.stringify(meal)}`;
    meals += 1;
    if (piece.length < PIECE) continue;
    signal.throwIfAborted();
    bytes += (await file.write(piece)).bytesWritten;
    piece = '';
    if (bytes >= size) break;
  }
  await file.write(`${piece}]}\n`);
  return meals;
}

/** A bench of a program that lost rows would measure nothing. */
async function expectMeals(file: string, wanted: number): Promise<void> {
  let lines = 0;
  for await (const rows of createReadStream(file) as AsyncIterable<Buffer>) lines += countLines(rows);
  if (lines !== wanted) throw new Error(`${lines} rows came of ${wanted} meals`);
}

/**
 * Compiles the program as `npm pack` ships it. From source a start takes three times as long and 30 MB more, for every
 * type has to be stripped first.
 */
function buildAsShipped({ atEnd }: BenchContext): string {
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'millrace-shipped-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const flags = ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(folder, 'dist')];
  execFileSync(process.execPath, [compiler, ...flags]);
  copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  return join(folder, 'dist/main.js');
}
