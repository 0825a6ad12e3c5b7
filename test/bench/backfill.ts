import { readdirSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { startSandbox } from '../../src/sandbox/start.ts';
import { writeConfig } from '../support/millrace.ts';
import { bench, FOLDER, MAIN_FLAG, ROUNDS } from './bench.ts';
import type { Figure } from './figures.ts';
import { figuresOfRuns, multiplesOf, programOf, tellTime, type Timed, timed } from './processes.ts';
import { inTurns } from './rounds.ts';

const SINCE = '2026-01-01';
const LOOK_EVERY_MS = 50;

interface Run extends Timed {
  /** The most files that its folder had at a time. */
  readonly files: number;
}

/** `millrace backfill` of meals from the stand-in of the service, beside another program. */
export const backfill = bench(
  'processor time of a backfill for each user, and the most files that it has at a time',
  {
    users: [1000, 'users of the service'],
    meals: [10, 'meals of each, one a day'],
    rounds: ROUNDS,
    main: MAIN_FLAG,
    against: ['', 'another program that takes turns with it: a main.js or a src/main.ts'],
    folder: FOLDER,
  },
  async ({ users, meals, rounds, main, against }, context) => {
    const { folder, signal, atEnd } = context;
    const until = new Date(Date.parse(SINCE) + (meals - 1) * 86_400_000).toISOString().slice(0, 10);
    const sandbox = await startSandbox({ port: 0, users, days: meals, mealsPerDay: 1, since: SINCE });
    atEnd(() => sandbox.stop());
    const config = writeConfig(folder, { service: { baseUrl: sandbox.url, apiKey: sandbox.apiKey } });
    const run = (program: string) => async (): Promise<Run> => {
      const out = join(folder, 'out');
      await rm(out, { recursive: true, force: true });
      let files = 0;
      const looks = setInterval(() => (files = Math.max(files, filesBelow(out))), LOOK_EVERY_MS);
      const command = ['backfill', '--all-users', '--config', config, '--since', SINCE, '--until', until];
      const took = await timed(
        [process.execPath, program, ...command, '--out', out],
        join(folder, 'output'),
        signal,
      ).finally(() => clearInterval(looks));
      const rows = (await readFile(join(out, 'meals.ndjson'), 'utf8')).split('\n').length - 1;
      if (rows !== users * meals) throw new Error(`${rows} rows came of ${users * meals} meals`);
      return { ...took, files };
    };
    const contenders: Readonly<Record<string, () => Promise<Run>>> = {
      millrace: run(await programOf(main, context)),
      ...(against === '' ? {} : { against: run(against) }),
    };
    const { millrace = [], against: other } = await inTurns(
      contenders,
      { rounds, warmUp: 1, tell: tellTime },
      context,
    );
    return [
      ...figuresOfRuns('backfill', millrace, '< 250'),
      ...perUser('backfill', millrace, users),
      ...(other === undefined ? [] : perUser('against', other, users)),
      ...(other === undefined ? [] : multiplesOf('as fast as the other', millrace, other, undefined)),
    ];
  },
);

function perUser(name: string, runs: readonly Run[], users: number): Figure[] {
  return [
    {
      name: `${name}: processor time a user, its start included`,
      values: runs.map(({ cpuSeconds }) => (cpuSeconds * 1000) / users),
      unit: ' ms',
    },
    { name: `${name}: most files at a time`, values: runs.map(({ files }) => files), digits: 0 },
  ];
}

function filesBelow(folder: string): number {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
      .length;
  } catch {
    // It is not there yet, or a folder of it went.
    return 0;
  }
}
