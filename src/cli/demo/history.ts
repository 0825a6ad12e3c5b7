import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makePlan } from '../../history/backfill/plan.ts';
import { runBackfill } from '../../history/backfill/run.ts';
import { countLines } from '../../lib/lines.ts';
import { startSandbox } from '../../sandbox/start.ts';
import { ServiceClient } from '../../history/service/client.ts';

export type DemoHistory = Awaited<ReturnType<typeof demoHistory>>;

const USERS = 20;
const PROVIDER = 'made_up';
const DAYS = { since: '2026-01-01', until: '2026-01-10' };
/** Speeds up the clock of the stand-in: the service takes minutes for a pull. */
const SPEED = 100_000;

/** Starts a stand-in of the service that sends events to the receiver, and fetches its meals into tables. */
export async function demoHistory(
  receiver: { readonly url: string; readonly secret: string },
  folder: string,
  signal: AbortSignal,
) {
  const sandbox = await startSandbox({
    host: '127.0.0.1',
    seed: 'demo',
    users: USERS,
    days: 10,
    speed: SPEED,
    data: 'after_pull',
    webhooks: [receiver],
  });
  /** SHA-256 of the body by id, for each accepted event of the stand-in. */
  const events = new Map<string, string>();
  const problems: string[] = [];
  sandbox.state.sender.onAttempt(({ message: { id, type, body }, status, problem }) => {
    if (status === 202) events.set(id, hash('sha256', body, 'hex'));
    else if (status !== 200) problems.push(`${id} (${type}) from the service: ${status ?? problem}`);
  });
  const service = new ServiceClient({ baseUrl: sandbox.url, apiKey: sandbox.apiKey, signal });
  const tables = join(folder, 'tables');
  try {
    const users: string[] = [];
    for await (const { user_id: user } of service.users.all({}, { signal })) users.push(user);
    const summary = await runBackfill({
      service,
      plan: makePlan({ users, providers: [PROVIDER], ...DAYS, windowDays: 0 }),
      output: tables,
      resume: false,
      trigger: true,
      concurrency: 8,
      pollMs: 50,
      patienceMs: 60_000,
      signal,
    });
    for (const user of summary.failed_users) problems.push(`${user}: the pull failed`);
    await sandbox.state.sender.idle();
    const meals = countLines(await readFile(join(tables, 'meals.ndjson')));
    const items = countLines(await readFile(join(tables, 'meal_items.ndjson')));
    if (meals !== summary.meals || items !== summary.meal_items)
      problems.push('the tables hold other rows than were pulled');
    return { users: users.length, events, meals, meal_items: items, tables, problems };
  } finally {
    await service.close();
    await sandbox.stop();
  }
}
