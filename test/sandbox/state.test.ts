import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import { temporaryFolder } from '../support/folders.ts';
import { childEnvironment, MAIN, millrace } from '../support/millrace.ts';
import { DAY, HOUR, ManualClock, MINUTE, SECOND } from './manual-clock.ts';
import { startReceiver } from './receiver.ts';
import { formOf, pdf } from './support.ts';

type Json = Readonly<Record<string, unknown>>;

/** A sandbox that is stopped and started again on one file and one clock. */
class Kept {
  readonly clock = new ManualClock();
  readonly file: string;
  sandbox!: Sandbox;
  #running = false;

  constructor(file: string) {
    this.file = file;
  }

  static async start(): Promise<Kept> {
    const kept = new Kept(join(await temporaryFolder(), 'state.db'));
    await kept.#start();
    onTestFinished(() => kept.stop());
    return kept;
  }

  /** Once only: what is stopped already stays so. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    this.#running = false;
    await this.sandbox.stop();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.#start();
  }

  async #start(): Promise<void> {
    this.sandbox = await startSandbox({ users: 10, days: 10, clock: this.clock, state: this.file });
    this.#running = true;
  }

  user(index: number): string {
    return this.sandbox.state.users.list(this.sandbox.teamId)[index]!.id;
  }

  async call(method: string, path: string, body?: unknown, headers?: Json): Promise<[number, Json]> {
    const form = body instanceof FormData;
    const response = await fetch(this.sandbox.url + path, {
      method,
      headers: {
        ...(body === undefined || form ? {} : { 'content-type': 'application/json' }),
        ...(headers ?? { 'x-service-api-key': this.sandbox.apiKey }),
      } as Record<string, string>,
      ...(body === undefined ? {} : { body: form ? body : JSON.stringify(body) }),
    });
    return [response.status, (await response.json()) as Json];
  }

  manage(method: string, path: string, body?: unknown): Promise<[number, Json]> {
    const headers = { 'x-management-key': this.sandbox.orgManagementKey };
    return this.call(method, `/management/v1${path}`, body, headers);
  }

  events(type: string): number {
    return this.sandbox.state.events.counts.get(type) ?? 0;
  }
}

test('a restart keeps who is unlucky, whatever became of the users', async () => {
  const file = join(await temporaryFolder(), 'state.db');
  const faults = { failingUsers: 3, retryingUsers: 3, unconnectedUsers: 2 };
  const options = { users: 20, days: 1, clock: new ManualClock(), state: file, faults };
  const first = await startSandbox(options);
  const { users, pulls } = first.state;
  for (const user of users.list(first.teamId).slice(0, 5)) users.delete(user);
  users.create(first.teamId, 'new here');
  const fates = users.list(first.teamId).map((user) => pulls.fateOf(user));
  await first.stop();
  const second = await startSandbox(options);
  onTestFinished(() => second.stop());
  const again = second.state;
  expect(again.users.list(second.teamId).map((user) => again.pulls.fateOf(user))).toEqual(fates);
  expect(fates).toContain('failing');
});

describe('a restart keeps', () => {
  test('users, their connections and their order; the seed gives the rest as before', async () => {
    const kept = await Kept.start();
    const { sandbox } = kept;
    const [, { user_id: made }] = await kept.call('POST', '/v2/user', { client_user_id: 'new here' });
    sandbox.connect(kept.user(3), 'made_up_slow');
    const before = await kept.call('GET', '/v2/user');
    const meals = await kept.call('GET', `/v2/summary/meal/${kept.user(5)}?start_date=2026-01-01`);
    await kept.restart();
    expect(await kept.call('GET', '/v2/user')).toEqual(before);
    expect(await kept.call('GET', `/v2/summary/meal/${kept.user(5)}?start_date=2026-01-01`)).toEqual(meals);
    const again = await kept.call('POST', '/v2/user', { client_user_id: 'new here' });
    expect(again).toMatchObject([400, { detail: { user_id: made } }]);
    const [, next] = await kept.call('POST', '/v2/user', { client_user_id: 'newer' });
    expect([made, ...(before[1]['users'] as Json[]).map(({ user_id }) => user_id)]).not.toContain(
      next['user_id'],
    );
    const fresh = await startSandbox({ users: 10, days: 10, clock: kept.clock });
    expect([fresh.apiKey, fresh.state.users.list(fresh.teamId)[0]!.id]).toEqual([
      sandbox.apiKey,
      kept.user(0),
    ]);
    await fresh.stop();
  });

  test('deletions: the grace period continues, and ends', async () => {
    const kept = await Kept.start();
    const [undone, gone] = [kept.user(1), kept.user(2)];
    for (const user of [undone, gone]) await kept.call('DELETE', `/v2/user/${user}`);
    kept.clock.advance(4 * DAY);
    await kept.restart();
    expect((await kept.call('GET', `/v2/user/${gone}`))[0]).toBe(404);
    const [, { connected_sources: sources }] = await (async () => {
      expect((await kept.call('POST', `/v2/user/undo_delete?user_id=${undone}`))[0]).toBe(200);
      return kept.call('GET', `/v2/user/${undone}`);
    })();
    expect(sources).toEqual([]);
    await kept.restart();
    kept.clock.advance(3 * DAY - 1);
    expect(kept.sandbox.state.users.known(gone)).not.toBeNull();
    kept.clock.advance(1);
    expect(kept.sandbox.state.users.known(gone)).toBeNull();
    await kept.restart();
    expect((await kept.call('POST', `/v2/user/undo_delete?user_id=${gone}`))[0]).toBe(404);
    expect((await kept.call('GET', `/v2/user/${undone}`))[0]).toBe(200);
    await kept.stop();
    const bytes = readFileSync(kept.file);
    expect([bytes.includes('made-up-client-1'), bytes.includes('made-up-client-2')]).toEqual([true, false]);
    await kept.restart();
    // The seed must not bring an erased user back.
    expect((await kept.call('GET', '/v2/user'))[1]['total']).toBe(9);
  });

  test('keys and teams: a deleted key stays deleted, and no new one has its value', async () => {
    const kept = await Kept.start();
    const { teamId } = kept.sandbox;
    const path = `/team/${teamId}/api_key`;
    const [, first] = await kept.manage('POST', path, { label: 'kept' });
    const [, second] = await kept.manage('POST', path, { label: 'deleted' });
    await kept.manage('DELETE', `${path}/${String(second['id'])}`);
    const [, other] = await kept.manage('POST', '/team', { name: 'another team' });
    await kept.manage('PATCH', `/team/${teamId}`, { name: 'renamed' });
    await kept.restart();
    const as = async (key: unknown) =>
      (await kept.call('GET', '/v2/user', undefined, { 'x-service-api-key': key }))[0];
    expect(await Promise.all([first['key'], other['api_key'], second['key']].map(as))).toEqual([
      200, 200, 401,
    ]);
    const [, third] = await kept.manage('POST', path, { label: 'new' });
    expect([first['key'], second['key']]).not.toContain(third['key']);
    expect(await as(second['key'])).toBe(401);
    const [, { data }] = await kept.manage('GET', '/team');
    expect((data as Json[]).map(({ name }) => name)).toEqual(['renamed', 'another team']);
  });

  test('webhooks: their secrets, and the end of a rotation', async () => {
    const kept = await Kept.start();
    const path = `/team/${kept.sandbox.teamId}/webhook`;
    const [, hook] = await kept.manage('POST', path, { url: 'http://127.0.0.1:9/made-up' });
    const [, { secret }] = await kept.manage('POST', `${path}/${String(hook['id'])}/secret`, {});
    kept.clock.advance(20 * HOUR);
    await kept.restart();
    const secrets = () => kept.sandbox.state.endpoints.list(kept.sandbox.teamId)[0]?.secrets;
    expect(secrets()).toEqual([secret, hook['secret']]);
    kept.clock.advance(4 * HOUR);
    expect(secrets()).toEqual([secret]);
    await kept.restart();
    expect(secrets()).toEqual([secret]);
  });

  test('webhook deliveries: what failed comes again at its time, under its id', async () => {
    const kept = await Kept.start();
    const receiver = await startReceiver();
    receiver.answer = { status: 500 };
    const path = `/team/${kept.sandbox.teamId}/webhook`;
    await kept.manage('POST', path, { url: receiver.url });
    const [id] = kept.sandbox.sendEvents(1);
    await kept.sandbox.state.sender.idle();
    await kept.restart();
    receiver.answer = { status: 204 };
    kept.clock.advance(5 * SECOND - 1);
    await kept.sandbox.state.sender.idle();
    expect(receiver.received).toHaveLength(1);
    kept.clock.advance(1);
    await kept.sandbox.state.sender.idle();
    expect(receiver.received.map(({ headers }) => headers['svix-id'])).toEqual([id, id]);
    expect(receiver.received[1]!.body).toEqual(receiver.received[0]!.body);
    await kept.restart();
    kept.clock.advance(2 * DAY);
    await kept.sandbox.state.sender.idle();
    expect(receiver.received).toHaveLength(2);
  });

  test('orders: one idempotency key is one order, whose course continues', async () => {
    const kept = await Kept.start();
    const order = { user_id: kept.user(0), lab_test_id: kept.sandbox.state.labs.tests[0]!.id };
    const headers = { 'x-service-api-key': kept.sandbox.apiKey, 'x-idempotency-key': 'once' };
    const [, { order: placed }] = await kept.call('POST', '/v3/order/create', order, headers);
    kept.clock.advance(HOUR);
    await kept.restart();
    const [, repeated] = await kept.call('POST', '/v3/order/create', order, headers);
    expect(repeated['message']).toBe('order exists');
    expect(repeated['order']).toMatchObject({
      id: (placed as Json)['id'],
      created_at: (placed as Json)['created_at'],
      status: 'received.testkit.requisition_created',
      low_level_status: 'requisition_created',
      events: [{ status: 'received.testkit.ordered' }, { status: 'received.testkit.requisition_created' }],
    });
    const other = { ...order, user_id: kept.user(1) };
    expect((await kept.call('POST', '/v3/order/create', other, headers))[0]).toBe(409);
    for (let day = 0; day < 5; day += 1) {
      kept.clock.advance(DAY);
      await kept.restart();
    }
    const [, { orders }] = await kept.call('GET', '/orders');
    expect(orders).toMatchObject([{ id: (placed as Json)['id'], status: 'completed.testkit.completed' }]);
    await kept.call('DELETE', `/v2/user/${kept.user(0)}`);
    kept.clock.advance(7 * DAY);
    await kept.restart();
    expect((await kept.call('GET', '/orders'))[1]['total']).toBe(0);
    const [, next] = await kept.call('POST', '/v3/order/create', { ...order, user_id: kept.user(0) });
    expect((next['order'] as Json)['id']).not.toBe((placed as Json)['id']);
  });

  test('parsing jobs: they continue from where they were', async () => {
    const kept = await Kept.start();
    const form = formOf({ file: pdf(), user_id: kept.user(0), needs_human_review: 'true' });
    const [, job] = await kept.call('POST', '/lab_report/v1/parser/job', form);
    const seen: unknown[] = [];
    for (const ms of [SECOND, 20 * SECOND, HOUR]) {
      kept.clock.advance(ms);
      await kept.restart();
      seen.push((await kept.call('GET', `/lab_report/v1/parser/job/${String(job['id'])}`))[1]['status']);
    }
    expect(seen).toEqual(['started', 'pending_review', 'completed']);
  });

  test('bulk ops and pulls: no trigger is lost or done twice, no faster than the provider allows', async () => {
    const kept = await Kept.start();
    const user_ids = Array.from({ length: 10 }, (_, n) => kept.user(n));
    await kept.call('POST', '/v2/link/bulk_trigger_historical_pull', { user_ids, provider: 'made_up' });
    kept.clock.advance(0);
    await kept.restart();
    const op = async () => ((await kept.call('GET', '/v2/link/bulk_op'))[1]['data'] as Json[])[0];
    expect(await op()).toMatchObject({ status: 'in_progress', processed: 8, pending: 2 });
    kept.clock.advance(MINUTE - 1);
    expect(await op()).toMatchObject({ processed: 8 });
    kept.clock.advance(1);
    expect(await op()).toMatchObject({ status: 'success', processed: 10, pending: 0 });
    await kept.restart();
    const [, { data }] = await kept.call('GET', '/v2/introspect/historical_pull?user_limit=50');
    const modes = (data as Json[]).map((one) => JSON.stringify(one).match(/"status":"(\w+)"/)?.[1]);
    expect(modes).toEqual([...Array.from({ length: 8 }, () => 'success'), 'scheduled', 'scheduled']);
    kept.clock.advance(2 * HOUR);
    const users = kept.sandbox.state.users.list(kept.sandbox.teamId);
    expect(users.filter(({ pulled }) => pulled.has('made_up'))).toHaveLength(10);
    // The last two, and what is told again.
    expect(kept.events('historical.data.meal.created')).toBeGreaterThanOrEqual(2);
  });
});

test('what was answered survives kill -9, and the clock does not go back', async () => {
  const file = join(await temporaryFolder(), 'state.db');
  const first = await spawned(file);
  const headers = { 'x-service-api-key': first.key, 'content-type': 'application/json' };
  const body = (name: string) => ({
    method: 'POST',
    headers,
    body: JSON.stringify({ client_user_id: name }),
  });
  for (let n = 0; n < 20; n += 1)
    expect((await fetch(`${first.url}/v2/user`, body(`made ${n}`))).status).toBe(200);
  const list = async (url: string) =>
    (await (await fetch(`${url}/v2/user?limit=500`, { headers })).json()) as Json;
  const before = await list(first.url);
  // While it runs nobody else may write there.
  const other = await millrace(['sandbox', '--port', '0', '--users', '5', '--state', file]);
  expect([other.code, other.stderr]).toEqual([
    2,
    expect.stringContaining(`${file} is being written by sandbox (process ${first.pid})`),
  ]);
  await first.kill();
  const second = await spawned(file);
  expect([await list(second.url), second.key]).toEqual([before, first.key]);
  const made = (await (await fetch(`${second.url}/v2/user`, body('after'))).json()) as { created_on: string };
  const newest = (before['users'] as { created_on: string }[]).at(-1)!;
  expect(Date.parse(made.created_on)).toBeGreaterThanOrEqual(Date.parse(newest.created_on));
  await second.kill();
});

test('a file that does not fit is refused by name', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'state.db');
  await (await startSandbox({ users: 3, seed: 'one', state: file })).stop();
  expect(statSync(file).mode & 0o077).toBe(0);
  await expect(startSandbox({ users: 4, seed: 'two', state: file })).rejects.toThrow(
    `${file} was created with seed one, not two; users 3, not 4`,
  );
  const text = join(folder, 'text.db');
  writeFileSync(text, 'not a database, but long enough to be looked at as one. '.repeat(40));
  await expect(startSandbox({ state: text })).rejects.toMatchObject({ code: 'state_unusable' });
  await expect(startSandbox({ state: join(folder, 'none', 'state.db') })).rejects.toThrow('none');
});

/** `millrace sandbox --state` a thousand times as fast as the wall; killed after the test. */
async function spawned(file: string) {
  const args = ['sandbox', '--port', '0', '--users', '5', '--speed', '1000', '--state', file, '--json'];
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: childEnvironment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  onTestFinished(kill);
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  const { url, api_key: key } = JSON.parse(line) as { url: string; api_key: string };
  return { url, key, kill, pid: child.pid };
}
