import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Delivery } from '../../../src/core/sink.ts';
import { startSandbox } from '../../../src/sandbox/start.ts';
import { ServiceClient } from '../../../src/history/service/client.ts';
import type { ServiceReport } from '../../../src/replay/reconcile/service-side.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { standIn } from '../../history/backfill/stand-in.ts';
import { mealsOf } from '../../history/service/support.ts';
import { signal } from '../../sinks/support.ts';
import { writeFiles } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { Place, saying } from '../../support/place.ts';
import { millrace, writeConfig, type Ended } from '../../support/millrace.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { runReconcile } from './support.ts';

const RANGE = ['--since', '2026-01-01', '--until', '2026-01-10'];

function rowsOf(file: string): Record<string, unknown>[] {
  return jsonLines(readFileSync(file));
}

test('meals the service has and the archive has not are named, and fetched, and no others', async () => {
  const folder = await temporaryFolder();
  const seeded = { seed: 'made-up', users: 2, days: 10, mealsPerDay: 2, sinceMs: Date.UTC(2026, 0, 1) };
  const service = await startSandbox({ host: '127.0.0.1', ...seeded });
  onTestFinished(() => service.stop());
  const client = new ServiceClient({ baseUrl: service.url, apiKey: service.apiKey, signal });
  onTestFinished(() => client.close());
  const users: string[] = [];
  for await (const { user_id: user } of client.users.all({}, { signal })) users.push(user);

  // All meals but every fifth came by webhook.
  const batch: Delivery[] = [];
  const missing: string[] = [];
  let n = 0;
  for (const user of users) {
    for (const meal of await mealsOf(client, user, { start: '2026-01-01', end: '2026-01-10' })) {
      n += 1;
      if (n % 5 === 0) {
        missing.push(meal.id);
        continue;
      }
      const body = Buffer.from(
        JSON.stringify({ event_type: 'daily.data.meal.created', user_id: user, data: meal }),
      );
      batch.push({ event: contractEvent(n, { user, body }), destination: null });
    }
  }
  await writeFiles(join(folder, 'archive'), [batch]);
  expect(missing.length).toBeGreaterThan(3);

  const config = writeConfig(folder);
  const env = { MILLRACE_SERVICE_BASE_URL: service.url, MILLRACE_SERVICE_API_KEY: service.apiKey };
  const run = (...args: readonly string[]) =>
    runReconcile(['--config', config, '--service', ...RANGE, '--json', ...args], env);
  const compared = await run();
  expect(compared.exit).toBe(4);
  const report = JSON.parse(compared.stdout) as ServiceReport;
  expect(report).toMatchObject({ users: 2, meals: n, missing: missing.length, filled: null });
  expect(report.missing_meals.map(({ id }) => id).toSorted()).toEqual(missing.toSorted());

  const out = join(folder, 'missing');
  const filled = await run('--fill', out);
  expect(filled.exit).toBe(4);
  const meals = rowsOf(join(out, 'meals.ndjson'));
  expect(meals.map(({ id }) => String(id)).toSorted()).toEqual(missing.toSorted());
  const items = rowsOf(join(out, 'meal_items.ndjson'));
  expect(new Set(items.map(({ meal_id: id }) => id))).toEqual(new Set(missing));
  expect(JSON.parse(filled.stdout)).toMatchObject({
    filled: { rows: { meals: missing.length, meal_items: items.length } },
  });

  // With what was filled, nothing is missing; and a fill never writes over another.
  expect((await run('--tables', out)).exit).toBe(0);
  await expect(run('--fill', out)).rejects.toMatchObject({
    code: 'usage',
    message: expect.stringContaining('meals.ndjson already'),
  });
});

const NO_DOCUMENTS = ['', '<html>', '{"detail":"maintenance"}', '{"meals":[{"id":"other"},{"id":"b"'];

async function parts() {
  const service = await standIn({ users: 2, meals: 4 });
  const folder = await temporaryFolder();
  const users = service.users.flatMap((user) => ['--user', user]);
  const range = ['--since', '2026-01-01', '--until', '2026-01-31'];
  const args = ['reconcile', '--config', writeConfig(folder), '--service', '--json', ...range, ...users];
  const run = (...more: readonly string[]): Promise<Ended> =>
    millrace([...args, ...more], { env: service.env, cwd: folder });
  return { service, folder, run };
}

test.each(NO_DOCUMENTS)(
  'an answer that is no document is asked for again, and leaves nothing: %s',
  async (body) => {
    const { service, folder, run } = await parts();
    const second = service.users[1] ?? '';
    service.instead = (_, user) => (user === second && service.asked.get(user) === 1 ? body : null);
    const ended = await run('--fill', join(folder, 'fill'));
    expect([ended.code, JSON.parse(ended.stdout)]).toMatchObject([4, { meals: 8, missing: 8, rejects: 0 }]);
    const rows = rowsOf(join(folder, 'fill', 'meals.ndjson'));
    expect(rows.map(({ id }) => String(id)).toSorted()).toEqual(service.mealIds());
  },
);

test('an archive that was written and is not there is an error, and one that was never written is said', async () => {
  const service = await standIn({ users: 1, meals: 4 });
  const place = await Place.make({}, service.env);
  const users = service.users.flatMap((user) => ['--user', user]);
  const fill = place.at('fill');
  const run = (...more: readonly string[]) =>
    place.run('reconcile', '--service', '--since', '2026-01-01', '--until', '2026-01-31', ...users, ...more);
  const before = await run();
  expect(before).toMatchObject(saying(4, `${place.at('archive')} is not there, and nothing was written`));

  const receiver = await place.start();
  await receiver.send(1);
  await receiver.stop();
  expect(await run()).toMatchObject({ code: 4, stderr: '' });
  renameSync(place.at('archive'), place.at('unmounted'));
  service.asked.clear();
  const refused = saying(1, `${place.at('archive')} does not hold the _manifest.jsonl`);
  expect(await run('--fill', fill)).toMatchObject(refused);
  // The folder that a disk is mounted on.
  mkdirSync(place.at('archive'));
  expect(await run('--fill', fill)).toMatchObject(refused);
  expect([service.asked.size, existsSync(join(fill, 'meals.ndjson'))]).toEqual([0, false]);
});
