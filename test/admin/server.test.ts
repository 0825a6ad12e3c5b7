import { expect, onTestFinished, test } from 'vitest';
import { directOperations } from '../../src/admin/direct-operations.ts';
import { startAdmin } from '../../src/admin/server.ts';

async function start(token: string | null = null): Promise<string> {
  const state = { lastSeq: 0, waiting: { events: 0, bytes: 0 }, cursors: () => new Map<string, number>() };
  const admin = await startAdmin({
    host: '127.0.0.1',
    port: 0,
    token,
    operations: directOperations(state, 1, () => []),
    ready: () => true,
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
