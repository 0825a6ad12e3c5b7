import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { loadCommand } from '../../../src/cli/load/command.ts';
import { run } from '../../cli/run.ts';
import { archive, mealEvent } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { lacksPostgres, Postgres } from '../../support/postgres.ts';
import { skipped } from '../../support/requirements.ts';
import { until } from '../../support/until.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { inPostgres } from './support.ts';

const lack = lacksPostgres();

/** Listens at the server's address and closes so many connections. */
async function refused(server: Postgres, times: number): Promise<void> {
  const socket = `${server.folder}/.s.PGSQL.5432`;
  rmSync(socket, { force: true });
  let tries = 0;
  const closed = createServer((client) => {
    tries += 1;
    client.destroy();
  }).listen(socket);
  await until(`${times} tries`, () => tries >= times);
  closed.close();
}

test.skipIf(lack !== null)(
  `millrace load --follow loads what comes, waits for a database that is gone, and ends at a signal${skipped(lack)}`,
  async () => {
    const server = Postgres.start();
    onTestFinished(() => server.stop());
    const path = await temporaryFolder();
    const database = inPostgres(server, 'followed');
    const stop = new AbortController();
    const has = (count: number): Promise<true> =>
      until(`${count} events`, async () => {
        const [found] = await database.sql('SELECT count(*) FROM events').catch(() => []);
        return found === String(count);
      });
    await archive(path, [mealEvent(1)]);
    const args = [path, ...database.to, '--follow', '--every', '20ms', '--json'];
    const following = run(loadCommand, args, {}, stop.signal);
    await has(1);
    await archive(path, [mealEvent(2), mealEvent(1)]);
    await has(2);
    server.down();
    await archive(path, [mealEvent(3)]);
    await refused(server, 5);
    server.up();
    await has(3);
    // The second of them came with the first event once more, in a file of another day. A round that has loaded a file just when
    // the server goes prints nothing of it, so they are counted in the database.
    await until('4 files', async () => {
      const [files] = await database.sql('SELECT count(*) FROM _millrace_loads').catch(() => []);
      return files === '4';
    });
    stop.abort();
    const { stdout, stderr, exit } = await following;
    expect(exit).toBe(0);
    // Each time it waits longer, and not as long as another that lost the database at the same moment.
    const pauses = Array.from(stderr.matchAll(/trying again in (\d+)ms/g), ([, ms]) => Number(ms));
    expect(pauses.length).toBeGreaterThanOrEqual(5);
    for (const [index, ms] of pauses.slice(0, 5).entries()) {
      expect(ms, `after ${index + 1} failures`).toBeGreaterThanOrEqual(20 + 10 * 2 ** index);
      expect(ms, `after ${index + 1} failures`).toBeLessThanOrEqual(20 + 20 * 2 ** index);
    }
    expect(jsonLines(stdout).map(({ ok }) => ok)).not.toContain(false);
  },
);

test.skipIf(lack !== null)(
  `millrace load --follow waits for a database that is not there at its beginning${skipped(lack)}`,
  async () => {
    const server = Postgres.start();
    onTestFinished(() => server.stop());
    const path = await temporaryFolder();
    const database = inPostgres(server, 'followed_late');
    await archive(path, [mealEvent(1)]);
    server.down();
    const stop = new AbortController();
    const args = [path, ...database.to, '--follow', '--every', '20ms'];
    const following = run(loadCommand, args, {}, stop.signal);
    await refused(server, 2);
    server.up();
    await until('the event', async () => {
      const [found] = await database.sql('SELECT count(*) FROM events').catch(() => []);
      return found === '1';
    });
    stop.abort();
    expect((await following).stderr).toContain('trying again in ');
  },
);
