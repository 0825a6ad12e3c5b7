import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import express from 'express';
import { expect, onTestFinished, test } from 'vitest';
import { Audit } from '../../../src/observe/admin/audit.ts';
import { tailApi } from '../../../src/observe/admin/tail.ts';
import type { Operations } from '../../../src/core/operations.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { RecentEvents } from '../../../src/observe/metrics/recent.ts';
import { Tail } from '../../../src/observe/metrics/tail.ts';
import { makeEvent } from '../../support/events.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { listen } from '../../support/listen.ts';
import { until } from '../../support/until.ts';

type Line = Readonly<Record<string, unknown>>;

/** The stream on a server of its own, for the one that `who` names. */
async function scene(who = 'owner', read: Operations['listEvents'] = () => Promise.resolve([])) {
  const folder = await temporaryFolder();
  const tail = new Tail(systemClock);
  const recent = new RecentEvents();
  const app = express();
  app.post('/', express.json(), (_request, response, next) => {
    response.locals['who'] = who;
    next();
  }, tailApi({ tail, recent }, new Audit(folder), read)); // prettier-ignore
  const server = createServer(app);
  const port = await listen(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const ask = async (body: object = {}): Promise<IncomingMessage> => {
    const headers = { 'content-type': 'application/json' };
    const asking = request({ host: '127.0.0.1', port, method: 'POST', headers });
    asking.end(JSON.stringify(body));
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    return response;
  };
  return { tail, recent, ask, folder };
}

/** Collects the lines of an answer as they come. */
function linesOf(response: IncomingMessage): Line[] {
  const lines: Line[] = [];
  let rest = '';
  response.setEncoding('utf8').on('data', (text: string) => {
    const [...whole] = (rest + text).split('\n');
    rest = whole.pop() ?? '';
    for (const line of whole) if (line !== '') lines.push(JSON.parse(line) as Line);
  });
  return lines;
}

test('a reader that does not read loses lines and learns how many; memory and the others do not suffer', async () => {
  const { tail, ask } = await scene();
  const slow = await ask();
  const quick = linesOf(await ask({ outcomes: ['dead'] }));
  const LINES = 60_000;
  const event = makeEvent({ user: 'made-up-user-'.repeat(20) });
  for (let n = 0; n < LINES; n += 1) {
    tail.add('accepted', event);
    if (n % 250 === 0) await turn();
  }
  tail.add('dead', event, { sink: 'hubs', code: 'made_up' });
  await until('the line of the quick reader', () => quick.length === 1);
  const lines = linesOf(slow);
  const counted = () =>
    lines.reduce((sum, line) => sum + (line['notice'] === 'lost' ? Number(line['lines']) : 1), 0);
  await until('all lines to arrive or to be counted as lost', () => counted() === LINES + 1);
  expect(lines.filter(({ outcome }) => outcome === 'accepted').length).toBeLessThan(LINES);
  expect(lines.at(-1)).toMatchObject({ outcome: 'dead', sink: 'hubs', code: 'made_up' });
});

test('a watcher that leaves is forgotten, and their number is bounded', async () => {
  const { tail, ask } = await scene();
  const all = await Promise.all(Array.from({ length: 10 }, () => ask()));
  expect((await ask()).statusCode).toBe(503);
  for (const response of all) response.destroy();
  await until('no one watches', () => !tail.isWatched);
  expect((await ask({ types: 'x' })).statusCode).toBe(500);
});

test('a body is noted before it is shown, or it is not shown; a session of the console is shown none', async () => {
  const { tail, recent, ask, folder } = await scene();
  recent.add(makeEvent({ id: 'msg_before', receivedAt: 5 }), 'accepted', 1);
  const lines = linesOf(await ask({ bodies: true, since: 5 }));
  const event = makeEvent({ id: 'msg_1' });
  tail.add('accepted', event);
  await until('two lines', () => lines.length === 2);
  expect(lines.map(({ id }) => id)).toEqual(['msg_before', 'msg_1']);
  expect(lines.map((line) => line['body_base64'])).toEqual([undefined, event.body.toString('base64')]);
  // A head that cannot be read stands for a disk that takes no more.
  writeFileSync(join(folder, 'audit.head'), 'no JSON');
  tail.add('accepted', makeEvent({ id: 'msg_2' }));
  await until('the end', () => lines.length === 3);
  expect(lines[2]).toEqual({
    notice: 'failed',
    detail: expect.stringContaining('Audit log cannot be written'),
  });
  expect((await (await scene('console')).ask({ bodies: true })).statusCode).toBe(403);
});

test('the body of what came in before is noted and shown, and of nothing else', async () => {
  const kept = { key: 4, id: 'msg_kept', body_base64: Buffer.from('made up').toString('base64') };
  const { recent, ask, folder } = await scene('owner', ({ after }) =>
    // As a journal: the next that it has, which is another event where that one was erased.
    Promise.resolve([{ ...kept, id: after === 3 ? kept.id : 'msg_other' } as never]),
  );
  const add = (id: string, outcome: 'accepted' | 'duplicate' | 'quarantined', seq: number | null): void =>
    recent.add(makeEvent({ id, receivedAt: 5 }), outcome, seq);
  add('msg_gone', 'accepted', 3);
  add('msg_kept', 'accepted', 4);
  add('msg_kept', 'duplicate', null);
  add('msg_bad', 'quarantined', null);
  const lines = linesOf(await ask({ bodies: true, since: 5 }));
  await until('all lines', () => lines.length === 4);
  const { body_base64: body } = kept;
  expect(lines.map((line) => [line['id'], line['body_base64']])).toEqual([
    ['msg_gone', undefined],
    ['msg_kept', body],
    ['msg_kept', body],
    ['msg_bad', undefined],
  ]);
  const noted = readFileSync(join(folder, 'audit.jsonl'), 'utf8');
  const key = Buffer.from(readFileSync(join(folder, 'audit.key'), 'utf8').trim(), 'hex');
  expect(noted).toContain(createHmac('sha256', key).update('msg_kept').digest('hex').slice(0, 32));
  const bare = linesOf(await ask({ since: 5 }));
  await until('the same without bodies', () => bare.length === 4);
  expect(bare.some((line) => 'body_base64' in line)).toBe(false);
});
