import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { ActivityBoard } from '../../src/admin/activities.ts';
import type { ConsoleSource } from '../../src/admin/console.ts';
import { directOperations } from '../../src/admin/direct-operations.ts';
import { startAdmin } from '../../src/admin/server.ts';
import { systemClock } from '../../src/core/clock.ts';
import { ManualClock } from '../deliver/support.ts';

const CONSOLE: ConsoleSource = { state: (since, after) => Promise.resolve({ since, after }) };

async function start(token: string | null = null, console: ConsoleSource | null = CONSOLE): Promise<string> {
  const state = { lastSeq: 0, waiting: { events: 0, bytes: 0 }, cursors: () => new Map<string, number>() };
  const admin = await startAdmin({
    host: '127.0.0.1',
    port: 0,
    token,
    operations: directOperations(state, 1, () => []),
    board: new ActivityBoard(systemClock),
    health: () => ({ ready: true, checks: [] }),
    metrics: () => Promise.resolve({ contentType: 'text/plain', text: 'made_up 1\n' }),
    console,
  });
  onTestFinished(() => admin.close());
  return admin.url;
}

async function retry(url: string, headers: Record<string, string>, body: string): Promise<[number, unknown]> {
  const response = await fetch(`${url}/api/quarantine/retry`, { method: 'POST', headers, body });
  const { code } = Object(await response.json()) as { code?: unknown };
  return [response.status, code];
}

test('a request that cannot be read is the fault of who sent it', async () => {
  const url = await start();
  const json = { 'content-type': 'application/json' };
  expect(await retry(url, json, '{bad')).toEqual([400, 'body_malformed']);
  expect(await retry(url, json, ' '.repeat(200_000))).toEqual([413, 'body_malformed']);
  expect(await retry(url, { ...json, 'content-encoding': 'rot13' }, '{}')).toEqual([415, 'body_malformed']);
  expect(await retry(url, json, '{"keys":["x"]}')).toEqual([400, 'usage']);
  expect(await retry(url, { 'content-type': 'text/plain' }, '{}')).toEqual([415, 'media_type_unsupported']);
});

test('what is no selection selects nothing, instead of everything', async () => {
  const url = await start('made-up-token');
  const json = { authorization: 'Bearer made-up-token', 'content-type': 'application/json' };
  // As curl sends it unless told otherwise: not read as JSON.
  const form = { ...json, 'content-type': 'application/x-www-form-urlencoded' };
  for (const [headers, body, detail] of [
    [json, '[7]', 'JSON object'],
    [json, '{"key":[7]}', 'not key'],
    [json, '{"sink":["a"]}', 'sink must be'],
    [form, '{"keys":[7]}', 'JSON object'],
  ] as const) {
    const response = await fetch(`${url}/api/dead-letters/drop`, { method: 'POST', headers, body });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(detail)]);
  }
});

test('with a token nobody else gets in, and health needs none', async () => {
  const url = await start('made-up-token');
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  expect((await fetch(`${url}/api/status`)).status).toBe(401);
  for (const given of ['Bearer other', 'Basic made-up-token', 'Bearer made-up-token2']) {
    expect((await fetch(`${url}/api/status`, { headers: { authorization: given } })).status).toBe(401);
  }
  const right = { authorization: 'Bearer made-up-token' };
  expect((await fetch(`${url}/api/status`, { headers: right })).status).toBe(200);
});

/** With a Host header of one's own, which `fetch` does not allow. */
async function askAs(host: string, url: string): Promise<number> {
  const { statusCode, body } = await request(url, { headers: { host } });
  await body.dump();
  return statusCode;
}

test('without a token, a page of another name is kept out: metrics, console and API', async () => {
  const url = await start();
  const { port } = new URL(url);
  for (const path of ['/metrics', '/console/', '/api/console', '/api/status', '/api/activities']) {
    expect([path, await askAs(`attacker.example:${port}`, url + path)]).toEqual([path, 403]);
    expect([path, await askAs(`127.0.0.1.attacker.example:${port}`, url + path)]).toEqual([path, 403]);
    expect([path, await askAs(`localhost:${port}`, url + path)]).toEqual([path, 200]);
  }
  // A supervisor asks by whatever name it knows.
  expect(await askAs('millrace.example', `${url}/readyz`)).toBe(200);
});

test('with a token the page is there to ask for it, and tells nothing by itself', async () => {
  const url = await start('made-up-token');
  for (const [path, status] of [
    ['/console/', 200],
    ['/console/main.js', 200],
    ['/metrics', 401],
    ['/api/console', 401],
    ['/api/activities', 401],
  ] as const)
    expect([path, (await fetch(url + path)).status]).toEqual([path, status]);
  const authorization = 'Bearer made-up-token';
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization } });
  expect([metrics.status, await metrics.text()]).toEqual([200, 'made_up 1\n']);
});

test('the page runs its own files only, in no frame, and is asked for anew', async () => {
  const url = await start();
  const page = await fetch(`${url}/console`);
  expect(page.url).toBe(`${url}/console/`);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe');
  expect(page.headers.get('x-content-type-options')).toBe('nosniff');
  expect(page.headers.get('cache-control')).toBe('no-cache');
  const html = await page.text();
  // Neither anything inline nor anything from elsewhere.
  expect(html).not.toMatch(/<style|\son[a-z]+=|\sstyle=|https?:|<script(?![^>]*src=)/);
  expect((await fetch(`${url}/console/%2e%2e/server.ts`)).status).toBe(404);
  expect((await fetch(`${url}/console/..%2fserver.ts`)).status).toBe(404);
});

test('the console asks for what it has not seen; bodies are refused unless they are allowed', async () => {
  const url = await start();
  expect(await (await fetch(`${url}/api/console?since=5&after=7`)).json()).toEqual({ since: 5, after: 7 });
  expect((await fetch(`${url}/api/console?since=x`)).status).toBe(400);
  expect((await fetch(`${url}/api/console/events/1`)).status).toBe(403);
  const open = await start(null, {
    ...CONSOLE,
    body: (seq) => Promise.resolve(seq === 1 ? Buffer.from('{"made":"up"}') : null),
  });
  expect(await (await fetch(`${open}/api/console/events/1`)).json()).toEqual({
    body_base64: Buffer.from('{"made":"up"}').toString('base64'),
  });
  expect((await fetch(`${open}/api/console/events/2`)).status).toBe(404);
  const none = await start(null, null);
  expect((await fetch(`${none}/console/`)).status).toBe(404);
  expect((await fetch(`${none}/api/console`)).status).toBe(404);
});

test('commands note how far they are; one that falls silent was interrupted', async () => {
  const clock = new ManualClock();
  const board = new ActivityBoard(clock);
  const activity = {
    kind: 'replay',
    id: 'made-up',
    title: 'an archive',
    state: 'running',
    unit: 'events',
    done: 5,
    total: 10,
    startedAt: 1,
    updatedAt: 1,
    detail: null,
  } as const;
  board.note(activity);
  expect(board.list()).toMatchObject([{ state: 'running', done: 5 }]);
  clock.after(20_000, () => undefined);
  clock.next();
  expect(board.list()).toMatchObject([{ state: 'interrupted', done: 5 }]);
  board.note({ ...activity, state: 'done', done: 10 });
  expect(board.list()).toMatchObject([{ state: 'done', done: 10 }]);

  const url = await start();
  const post = async (body: object): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(`${url}/api/activities`, { method: 'POST', headers, body: JSON.stringify(body) }))
      .status;
  };
  expect(await post(activity)).toBe(200);
  expect(await post({ ...activity, kind: 'mischief' })).toBe(400);
  expect(await post({ ...activity, user: 'made-up' })).toBe(400);
  expect(await (await fetch(`${url}/api/activities`)).json()).toMatchObject([{ id: 'made-up', done: 5 }]);
});
