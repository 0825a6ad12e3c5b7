import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { Audit } from '../../../src/observe/admin/audit.ts';
import { ActivityBoard } from '../../../src/observe/admin/activities.ts';
import type { ConsoleSource } from '../../../src/observe/admin/console.ts';
import { directOperations } from '../../../src/observe/admin/operations.ts';
import { startAdmin } from '../../../src/observe/admin/server.ts';
import { Tokens } from '../../../src/observe/admin/tokens.ts';
import { systemClock, type Clock } from '../../../src/core/clock.ts';
import { MemoryLog } from '../../../src/deliver/memory-log.ts';
import { RecentEvents } from '../../../src/observe/metrics/recent.ts';
import { Tail } from '../../../src/observe/metrics/tail.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { ManualClock } from '../../deliver/support.ts';

const CONSOLE: ConsoleSource = { state: (since, after) => Promise.resolve({ since, after }) };

const OWNER = { authorization: 'Bearer made-up-token-of-the-owner' };
const CONFIG = { authorization: 'Bearer made-up-token-of-the-config' };

interface Started {
  readonly config?: string | null;
  readonly console?: ConsoleSource | null;
  readonly clock?: Clock;
}

async function start({
  config = null,
  console = CONSOLE,
  clock = systemClock,
}: Started = {}): Promise<string> {
  const admin = await startAdmin({
    host: '127.0.0.1',
    port: 0,
    tokens: new Tokens({ config, owner: 'made-up-token-of-the-owner' }, clock),
    audit: new Audit(await temporaryFolder()),
    operations: directOperations(new MemoryLog({ maxBytes: 1 }), {
      pid: 1,
      sinks: () => [],
      receiving: () => ({
        connections: { open: 0, max: 1, evicted: 0, dropped: 0 },
        receipts: null,
        refused: {},
        refusedSince: null,
        refusedLast: null,
        signing: { since: 0, secrets: [] },
      }),
      earlier: () => [],
    }),
    board: new ActivityBoard(systemClock),
    flush: () => Promise.resolve([]),
    search: null,
    replays: null,
    archives: () => [],
    meter: { tail: new Tail(clock), recent: new RecentEvents() },
    health: () => ({ ready: true, checks: [], archives: [] }),
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
  const json = { ...OWNER, 'content-type': 'application/json' };
  expect(await retry(url, json, '{bad')).toEqual([400, 'body_malformed']);
  expect(await retry(url, json, ' '.repeat(200_000))).toEqual([413, 'body_malformed']);
  expect(await retry(url, { ...json, 'content-encoding': 'rot13' }, '{}')).toEqual([415, 'body_malformed']);
  expect(await retry(url, json, '{"keys":["x"]}')).toEqual([400, 'usage']);
  expect(await retry(url, { ...OWNER, 'content-type': 'text/plain' }, '{}')).toEqual([
    415,
    'media_type_unsupported',
  ]);
});

test('what is no selection selects nothing, instead of everything', async () => {
  const url = await start();
  const json = { ...OWNER, 'content-type': 'application/json' };
  // As curl sends it without a header: not read as JSON.
  const form = { ...OWNER, 'content-type': 'application/x-www-form-urlencoded' };
  for (const [headers, body, status, detail] of [
    [json, '[7]', 400, 'expected object'],
    [json, '{"key":[7]}', 400, 'Unrecognized key'],
    [json, '{"sink":["a"]}', 400, 'at sink'],
    [form, '{"keys":[7]}', 415, 'must be application/json'],
  ] as const) {
    const response = await fetch(`${url}/api/dead-letters/drop`, { method: 'POST', headers, body });
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(detail)]);
  }
});

test('without a token no one gets in, whether one is configured or not, and health needs none', async () => {
  for (const [config, right] of [
    [null, [OWNER]],
    ['made-up-token-of-the-config', [OWNER, CONFIG]],
  ] as const) {
    const url = await start({ config });
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    expect((await fetch(`${url}/readyz?verbose`)).status).toBe(200);
    const wrong = [
      'Bearer other',
      'Bearer ',
      `Basic ${OWNER.authorization.slice(7)}`,
      `${OWNER.authorization}2`,
    ];
    for (const given of [{}, ...wrong.map((authorization) => ({ authorization }))]) {
      for (const path of ['status', 'quarantine?bodies=true', 'console', 'activities', 'x']) {
        const { status, headers } = await fetch(`${url}/api/${path}`, { headers: given });
        expect([path, status, headers.get('www-authenticate')]).toEqual([path, 401, 'Bearer']);
      }
    }
    for (const headers of right) expect((await fetch(`${url}/api/status`, { headers })).status).toBe(200);
  }
  expect((await fetch(`${await start()}/api/status`, { headers: CONFIG })).status).toBe(401);
});

type Posted = [status: number, answer: Record<string, unknown>];

async function post(url: string, path: string, headers: object, body: object = {}): Promise<Posted> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return [response.status, (await response.json()) as Posted[1]];
}

const noBody = () => Promise.resolve(null);

test('a session of the console is shown bodies only where it may see them; the token of commands is', async () => {
  const paths = ['/api/events?limit=1', '/api/quarantine?bodies=true', '/api/dead-letters?bodies=true'];
  let isShown = false;
  const source: ConsoleSource = {
    ...CONSOLE,
    get body() {
      return isShown ? noBody : undefined;
    },
  };
  const url = await start({ console: source });
  const [, { code }] = await post(url, '/api/console/links', OWNER);
  const [, { token }] = await post(url, '/api/console/sessions', OWNER, { code });
  const session = { authorization: `Bearer ${String(token)}` };
  const statuses = (headers: Record<string, string>, asked: readonly string[]) =>
    Promise.all(asked.map(async (path) => (await fetch(url + path, { headers })).status));
  expect(await statuses(session, paths)).toEqual([403, 403, 403]);
  expect(await statuses(session, ['/api/quarantine', '/api/dead-letters?bodies=false'])).toEqual([200, 200]);
  expect(await statuses(OWNER, paths)).not.toContain(403);
  // As a reload does.
  isShown = true;
  expect(await statuses(session, paths)).not.toContain(403);
});

/** With a Host header of one's own, which `fetch` does not allow. */
async function askAs(host: string, url: string): Promise<number> {
  const { statusCode, body } = await request(url, { headers: { host, ...OWNER } });
  await body.dump();
  return statusCode;
}

test('without admin.token, a page of another name is kept out: metrics, console and API', async () => {
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

test('the page is there to be let in, and tells no events of its own', async () => {
  const url = await start();
  const paths = ['/console/', '/console/main.js', '/api/console', '/api/activities'];
  const answers = await Promise.all(paths.map((path) => fetch(url + path)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 401]);
});

test('metrics need no token on this machine, and admin.token where it is set', async () => {
  expect(await (await fetch(`${await start()}/metrics`)).text()).toBe('made_up 1\n');
  const url = await start({ config: 'made-up-token-of-the-config' });
  expect((await fetch(`${url}/metrics`)).status).toBe(401);
  expect(await (await fetch(`${url}/metrics`, { headers: CONFIG })).text()).toBe('made_up 1\n');
});

test('a link lets one browser in, once; its session can be ended, and makes no further links', async () => {
  const url = await start();
  expect((await post(url, '/api/console/links', {}))[0]).toBe(401);
  const [made, { code }] = await post(url, '/api/console/links', OWNER);
  expect([made, typeof code]).toEqual([200, 'string']);
  expect((await post(url, '/api/console/sessions', {}, { code: `${String(code)}x` }))[0]).toBe(401);
  const [opened, { token }] = await post(url, '/api/console/sessions', {}, { code });
  expect(opened).toBe(200);
  expect((await post(url, '/api/console/sessions', {}, { code }))[0]).toBe(401);
  // Nor does the code let anybody in by itself.
  expect((await post(url, '/api/quarantine/retry', { authorization: `Bearer ${String(code)}` }))[0]).toBe(
    401,
  );

  const session = { authorization: `Bearer ${String(token)}` };
  expect((await fetch(`${url}/api/console`, { headers: session })).status).toBe(200);
  expect((await post(url, '/api/console/links', session))[0]).toBe(403);
  expect((await post(url, '/api/console/sign-out', session))[0]).toBe(200);
  expect((await fetch(`${url}/api/console`, { headers: session })).status).toBe(401);
});

test('a link ends after five minutes, a session after twelve hours', async () => {
  const clock = new ManualClock();
  const url = await start({ clock });
  const pass = (ms: number): void => {
    clock.after(ms, () => undefined);
    clock.next();
  };
  const link = async (): Promise<unknown> => (await post(url, '/api/console/links', OWNER))[1]['code'];
  const late = await link();
  const used = await link();
  pass(299_000);
  const [status, { token }] = await post(url, '/api/console/sessions', {}, { code: used });
  expect(status).toBe(200);
  pass(2000);
  expect((await post(url, '/api/console/sessions', {}, { code: late }))[0]).toBe(401);
  const headers = { authorization: `Bearer ${String(token)}` };
  pass(12 * 3_600_000 - 3000);
  expect((await fetch(`${url}/api/console`, { headers })).status).toBe(200);
  pass(2000);
  expect((await fetch(`${url}/api/console`, { headers })).status).toBe(401);
});

test('the page runs its own files only, in no frame, and is checked again at each load', async () => {
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

const get = (path: string): Promise<Response> => fetch(path, { headers: OWNER });

test('the console asks for what it has not seen; bodies are refused unless they are allowed', async () => {
  const url = await start();
  expect(await (await get(`${url}/api/console?since=5&after=7`)).json()).toEqual({ since: 5, after: 7 });
  expect((await get(`${url}/api/console?since=x`)).status).toBe(400);
  expect((await get(`${url}/api/console/events/1`)).status).toBe(403);
  const open = await start({
    console: {
      ...CONSOLE,
      body: (seq) => Promise.resolve(seq === 1 ? { id: 'msg_1', body: Buffer.from('{"made":"up"}') } : null),
    },
  });
  expect(await (await get(`${open}/api/console/events/1`)).json()).toEqual({
    body_base64: Buffer.from('{"made":"up"}').toString('base64'),
  });
  expect((await get(`${open}/api/console/events/2`)).status).toBe(404);
  const none = await start({ console: null });
  expect((await get(`${none}/console/`)).status).toBe(404);
  expect((await get(`${none}/api/console`)).status).toBe(404);
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
  const note = async (body: object): Promise<number> => (await post(url, '/api/activities', OWNER, body))[0];
  expect(await note(activity)).toBe(200);
  expect(await note({ ...activity, kind: 'mischief' })).toBe(400);
  expect(await note({ ...activity, user: 'made-up' })).toBe(400);
  expect(await (await fetch(`${url}/api/activities`, { headers: OWNER })).json()).toMatchObject([
    { id: 'made-up', done: 5 },
  ]);
});
