import { expect, test } from 'vitest';
import { newDeliveryId } from '../../src/sandbox/made-up-events.ts';
import { TEAM, USER } from '../support/events.ts';
import { Place } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

const TYPE = 'made.up.measured';

async function post(receiver: Serving, data: object): Promise<void> {
  const event = { event_type: TYPE, team_id: TEAM, user_id: USER, client_user_id: 'made-up', data };
  await receiver.send([{ id: newDeliveryId(), body: Buffer.from(JSON.stringify(event)) }]);
}

/** Lines of the log about a field of the type. */
function linesAbout(receiver: Serving, path: string): unknown[] {
  const lines = receiver.logLines().filter(({ type }) => type === TYPE);
  return lines.filter(({ fields }) => Array.isArray(fields) && fields.includes(path));
}

async function logged(receiver: Serving, path: string): Promise<void> {
  await until(`a line about ${path}`, () => linesAbout(receiver, path).length > 0);
}

test('what is new is logged once: through kill -9, a start, a reload that turns it off and one that turns it on', async () => {
  const place = await Place.make({ schema: { alertTo: 'archive' } });
  const reload = async (receiver: Serving, schema: unknown): Promise<void> => {
    place.edit((config) => (config.schema = schema));
    expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  };
  const one = await place.startProcess();
  await post(one, { steps: 1 });
  await until('a line about the type', () => one.logLines().some(({ type }) => type === TYPE));
  await post(one, { steps: 1, glucose: 5.5 });
  await logged(one, '/data/glucose');
  await one.kill('SIGKILL');

  const two = await place.start();
  await post(two, { steps: 1, glucose: 5 });
  await post(two, { steps: 1, vo2: 40 });
  await logged(two, '/data/vo2');
  // Once more at most, where it was logged and not yet kept.
  expect(linesAbout(two, '/data/glucose').length).toBeLessThanOrEqual(1);
  await reload(two, false);
  await post(two, { steps: 1, unseen: 1 });
  await reload(two, { alertTo: 'archive' });
  await post(two, { steps: 1, glucose: 5, vo2: 40, hrv: 1 });
  await logged(two, '/data/hrv');
  expect(linesAbout(two, '/data/unseen')).toEqual([]);

  const { types } = await place.json('schema', TYPE);
  const paths = (types[0].fields as { path: string }[]).map(({ path }) => path);
  const seen = ['glucose', 'hrv', 'steps', 'vo2'].map((name) => `/data/${name}`);
  expect(paths.filter((path) => path.startsWith('/data/')).sort()).toEqual(seen);
  expect(await two.metrics()).toMatch(/^millrace_schema_first_seen_total\{what="field"\} [2-9]$/m);
  await two.stop();

  // Without a receiver the journal says the same.
  expect(await place.json('schema', TYPE)).toMatchObject({ types: [{ type: TYPE }] });
  const stored = [...(await place.archived()).values()].flat();
  const alerts = stored.filter(({ record }) => record.event_type === 'millrace.schema.changed');
  const news = alerts.flatMap(({ body }) => JSON.parse(body.toString()).data.new_fields as string[]);
  expect(news).toEqual(expect.arrayContaining(['/data/glucose', '/data/vo2', '/data/hrv']));
}, 60_000);
