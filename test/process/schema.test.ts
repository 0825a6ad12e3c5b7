import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { newDeliveryId } from '../../src/sandbox/made-up-events.ts';
import { TEAM, USER } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const TYPE = 'made.up.measured';

async function post({ url }: Serving, data: object, type = TYPE): Promise<void> {
  const body = Buffer.from(
    JSON.stringify({ event_type: type, team_id: TEAM, user_id: USER, client_user_id: 'made-up', data }),
  );
  expect((await postSigned(url, body, { id: newDeliveryId() })).status).toBe(202);
}

/** Lines of the log about a field of the type. */
function linesAbout(receiver: Serving, path: string): unknown[] {
  return receiver
    .logLines()
    .filter(({ type, fields }) => type === TYPE && Array.isArray(fields) && fields.includes(path));
}

async function told(receiver: Serving, path: string): Promise<void> {
  await until(`a line about ${path}`, () => linesAbout(receiver, path).length > 0);
}

async function firstTold(receiver: Serving): Promise<void> {
  await until('a line about the type', () => receiver.logLines().some(({ type }) => type === TYPE));
}

test('what is new is told once: through kill -9, a start, a reload that turns it off and one that turns it on', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, { schema: { alertTo: 'archive' } });
  const reload = async (receiver: Serving, schema: unknown): Promise<void> => {
    const written = JSON.parse(readFileSync(config, 'utf8')) as object;
    writeFileSync(config, JSON.stringify({ ...written, schema }));
    const count = () => receiver.logLines().filter(({ msg }) => msg === 'reloaded').length;
    const before = count();
    receiver.signal('SIGHUP');
    await until('the reload', () => count() > before);
  };
  const one = await ReceiverProcess.start(config);
  await post(one, { steps: 1 });
  await firstTold(one);
  await post(one, { steps: 1, glucose: 5.5 });
  await told(one, '/data/glucose');
  await one.kill('SIGKILL');

  const two = await Receiver.start(config);
  await post(two, { steps: 1, glucose: 5 });
  await post(two, { steps: 1, vo2: 40 });
  await told(two, '/data/vo2');
  // Once more at most, where it was told and not yet kept.
  expect(linesAbout(two, '/data/glucose').length).toBeLessThanOrEqual(1);
  await reload(two, false);
  await post(two, { steps: 1, unseen: 1 });
  await reload(two, { alertTo: 'archive' });
  await post(two, { steps: 1, glucose: 5, vo2: 40, hrv: 1 });
  await told(two, '/data/hrv');
  expect(linesAbout(two, '/data/unseen')).toEqual([]);

  const seen = await millrace(['schema', TYPE, '--json', '--config', config]);
  const { types } = JSON.parse(seen.stdout) as { types: { fields: { path: string }[] }[] };
  const paths = types[0]?.fields.map(({ path }) => path) ?? [];
  expect(paths.filter((path) => path.startsWith('/data/')).sort()).toEqual([
    '/data/glucose',
    '/data/hrv',
    '/data/steps',
    '/data/vo2',
  ]);
  const { body } = await request(`${two.adminUrl}/metrics`);
  expect(await body.text()).toMatch(/^millrace_schema_first_seen_total\{what="field"\} [2-9]$/m);
  await two.kill('SIGTERM');

  // Without a receiver the journal says the same.
  expect(JSON.parse((await millrace(['schema', TYPE, '--json', '--config', config])).stdout)).toMatchObject({
    types: [{ type: TYPE }],
  });
  const stored = [...(await readBack(join(folder, 'archive'))).values()].flat();
  const alerts = stored.filter(({ record }) => record.event_type === 'millrace.schema.changed');
  const news = alerts.map(
    ({ body: text }) => JSON.parse(text.toString()) as { data: { new_fields: string[] } },
  );
  expect(news.flatMap(({ data }) => data.new_fields)).toEqual(
    expect.arrayContaining(['/data/glucose', '/data/vo2', '/data/hrv']),
  );
}, 60_000);
