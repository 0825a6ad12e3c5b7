import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { archive, mealEvent, mealOf } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { skipped } from '../../support/requirements.ts';
import { runCount } from '../../support/run-count.ts';
import { inPostgres, kindsOf, postgresServer, type LoadedDatabase } from './support.ts';

const CHILD = fileURLToPath(new URL('kill-child.ts', import.meta.url));
/** `MILLRACE_RUNS=20 npm run test:long -- test/export/load/kill` has 200. */
const KILLS = runCount({ long: 10 });
/** A test may take this long for each kill. */
const PATIENCE = 60_000;
/** Events that come between two runs, and files that they are in. */
const NEW_EVENTS = 400;
const NEW_FILES = 4;

const postgres = postgresServer();
const { lack, server } = postgres;

interface Run {
  readonly killed: boolean;
  /** From when it was connected. */
  readonly milliseconds: number;
  readonly stdout: string;
}

/** Runs the child to its end, or kills it a while after it has begun. */
async function run(args: readonly string[], after = Infinity): Promise<Run> {
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  let begun = Infinity;
  let timer: NodeJS.Timeout | undefined;
  child.stdout.on('data', (text: Buffer) => {
    stdout += String(text);
    if (begun !== Infinity) return;
    begun = performance.now();
    if (after !== Infinity) timer = setTimeout(() => child.kill('SIGKILL'), after);
  });
  child.stderr.on('data', (text: Buffer) => (stderr += String(text)));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(timer);
  if (signal === null && code !== 0) throw new Error(`the child ended with ${code}: ${stderr}`);
  return { killed: signal === 'SIGKILL', milliseconds: performance.now() - begun, stdout };
}

/** What the database has: its events by id, and how many rows of each table. */
async function contents(database: LoadedDatabase): Promise<{ ids: string[]; counts: string[] }> {
  const counts =
    await database.sql(`SELECT (SELECT count(*) FROM events), (SELECT count(DISTINCT id) FROM events),
    (SELECT count(*) FROM meals), (SELECT count(DISTINCT id) FROM meals), (SELECT count(*) FROM meal_items)`);
  return { ids: (await database.sql('SELECT id FROM events')).toSorted(), counts };
}

/** The same by the test's own list: every id once, and the rows of each event. */
function expected(ids: readonly string[]): { ids: string[]; counts: string[] } {
  const foods = ids.reduce((sum, id) => sum + mealOf(Number(id.slice(4))).foods, 0);
  const n = ids.length;
  return { ids: ids.toSorted(), counts: [`${n}|${n}|${n}|${n}|${foods}`] };
}

const LOADERS = kindsOf(postgres);

describe(`after ${KILLS} kills, count(*) is the number of distinct events`, () => {
  test.skipIf(LOADERS.every(({ skip }) => skip)).each(LOADERS.filter(({ skip }) => !skip))(
    'of a load into $kind',
    { timeout: 600_000 + KILLS * PATIENCE },
    async ({ make }) => {
      const database = await make();
      const [address, schema = ''] = database.place;
      const args = [address, schema];
      const folder = await temporaryFolder();
      const ids: string[] = [];
      let last = 0;
      const grow = async (): Promise<void> => {
        for (let file = 0; file < NEW_FILES; file += 1) {
          const events = Array.from({ length: NEW_EVENTS / NEW_FILES }, (_, i) => mealEvent(last + i + 1));
          ids.push(...events.map(({ id }) => id));
          // Some come twice, as they do after a crash of the receiver.
          const again = last === 0 ? [] : [mealEvent(last), mealEvent(last - 7)];
          last += events.length;
          await archive(folder, [...events, ...again]);
        }
      };
      await grow();
      await run(['load', ...args, folder]);
      await grow();
      const usual = (await run(['load', ...args, folder])).milliseconds;
      let killed = 0;
      while (killed < KILLS) {
        await grow();
        const { killed: was } = await run(['load', ...args, folder], usual * Math.random());
        if (was) killed += 1;
      }
      await run(['load', ...args, folder]);
      expect(await contents(database)).toEqual(expected(ids));
    },
  );

  test.skipIf(lack !== null)(
    `of the postgres sink${skipped(lack)}`,
    { timeout: 600_000 + KILLS * PATIENCE },
    async () => {
      const args = ['sink', server().url, 'killed_sink'];
      const send = async (from: number, to: number, after?: number): Promise<Run & { upTo: number }> => {
        const ended = await run([...args, String(from), String(to)], after);
        return { ...ended, upTo: Number(/(\d+)\n$/.exec(ended.stdout)?.[1] ?? from - 1) };
      };
      const first = await send(1, NEW_EVENTS);
      let delivered = first.upTo;
      let killed = 0;
      while (killed < KILLS) {
        const { killed: was, upTo } = await send(
          delivered + 1,
          delivered + NEW_EVENTS,
          first.milliseconds * Math.random(),
        );
        // What the child had not reported is sent again, whether it was committed or not.
        delivered = upTo;
        if (was) killed += 1;
      }
      const end = delivered + NEW_EVENTS;
      await send(delivered + 1, end);
      const ids = Array.from({ length: end }, (_, n) => mealEvent(n + 1).id);
      expect(await contents(inPostgres(server(), 'killed_sink'))).toEqual(expected(ids));
    },
  );
});
