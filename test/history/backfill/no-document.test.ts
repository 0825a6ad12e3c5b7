import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Inlet } from '../../../src/core/sink.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { parseOptions } from '../../../src/sinks/follow-up/config.ts';
import { createSink } from '../../../src/sinks/follow-up/sink.ts';
import { DEFAULT_FIELDS } from '../../../src/receive/validate/envelope.ts';
import { makeContext, signal, tempFolder } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { standIn } from './stand-in.ts';
import { lastLine, lines, rowIds } from './support.ts';

/** Answers with status 200 that say nothing of what meals there are. */
const NO_DOCUMENTS = [
  '<html><body>Bad gateway</body></html>',
  '{"detail":"maintenance"}',
  'null',
  '{}',
  '[]',
  '{"meals":null}',
  '{"meals":{"id":"a"}}',
  '{"meals":[{"id":"a"}]}}',
] as const;

const RANGE = ['--all-users', '--since', '2026-01-01', '--until', '2026-01-31'];

test.each(NO_DOCUMENTS)('a backfill asks again after %s', async (body) => {
  const service = await standIn({ users: 2 });
  const [first] = service.users;
  service.instead = (_, user) => (user === first && service.asked.get(user) === 1 ? body : null);
  const out = await temporaryFolder();
  const ended = await millrace(['backfill', ...RANGE, '--out', out, '--json'], {
    env: service.env,
    cwd: out,
  });
  expect([ended.code, ended.stderr]).toEqual([0, expect.any(String)]);
  expect(rowIds(join(out, 'meals.ndjson'))).toEqual(service.mealIds());
  expect(lastLine(ended)).toMatchObject({ ok: true, rejects: 0 });
});

test('items that are no meals, in a document that is one, are rejects', async () => {
  const service = await standIn({ users: 1 });
  service.instead = (path) => (path === '/v2/user' ? null : '{"total":3,"meals":[{"id":"a"},5,"b"]}');
  const out = await temporaryFolder();
  const ended = await millrace(['backfill', ...RANGE, '--out', out, '--json'], {
    env: service.env,
    cwd: out,
  });
  expect([ended.code, lastLine(ended)]).toEqual([3, expect.objectContaining({ meals: 1, rejects: 2 })]);
  expect([...service.asked.values()]).toEqual([1]);
  expect(lines(join(out, '_backfill.ndjson'))).toMatchObject([{ status: 'done', meals: 1, rejects: 2 }]);
});

test.each(NO_DOCUMENTS)('a follow-up pull is not over with %s, and journals nothing of it', async (body) => {
  const service = await standIn({ users: 1 });
  const [user = ''] = service.users;
  service.instead = () => (service.asked.get(user) === 1 ? body : null);
  const data = { user_id: user, start_date: '2026-01-01', end_date: '2026-01-31' };
  const type = 'historical.data.meal.created';
  const announced = Buffer.from(JSON.stringify({ event_type: type, data }));
  const event = contractEvent(1, { type, user, body: announced });
  const taken: string[] = [];
  const take: Inlet['take'] = (_, batch) => {
    taken.push(...batch.map(({ body: bytes }) => bytes.toString()));
    return Promise.resolve();
  };
  const options = parseOptions({ path: tempFolder(), baseUrl: service.url, apiKey: 'made-up', events: true });
  const sink = createSink(options, { ...makeContext(), inlet: { fields: () => DEFAULT_FIELDS, take } });
  onTestFinished(() => sink.close(signal));
  await sink.open(signal);
  const send = async () => (await sink.send([{ event, destination: null }], signal))[0];
  // It is about this answer, and not about the whole service.
  expect(await send()).toMatchObject({ status: 'retry', sink: false });
  const whole = body.includes('{"id":"a"}]');
  expect(taken).toHaveLength(whole ? 1 : 0);
  taken.splice(0);
  expect(await send()).toEqual({ status: 'delivered' });
  expect(taken).toHaveLength(service.mealIds().length);
});
