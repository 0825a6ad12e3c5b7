import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { Place } from '../support/place.ts';
import { expectConserved, expectOnce } from '../support/read-back.ts';
import { Receiver } from '../support/receiver.ts';
import { SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const NEW_SECRET = `whsec_${Buffer.from('another made-up secret of the tests').toString('base64')}`;
const RELOADED = { msg: 'reloaded' };

test('fault 18: a secret rotated and a route moved under load: no request fails, every event is where it belongs', async () => {
  const place = await Place.make();
  const receiver = await place.start();
  const acknowledged = new Map<string, Buffer>();
  const statuses = new Set<number>();
  let secret = SECRET;
  const stop = new AbortController();
  let n = 0;
  const lane = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const { id, body } = madeUpEvent((n += 1));
      const { status } = await receiver.post(body, { id, secret });
      statuses.add(status);
      acknowledged.set(id, body);
    }
  };
  const load = Promise.all(Array.from({ length: 4 }, lane));
  const more = (events: number): Promise<unknown> => {
    const goal = acknowledged.size + events;
    return until('more answers', () => acknowledged.size >= goal);
  };
  await more(50);
  place.edit((config) => {
    config.signing.secrets = [SECRET, NEW_SECRET];
    config.sinks.labs = { type: 'files', path: place.at('labs') };
    config.routes = [
      { match: ['labtest.', 'lab_report.'], to: ['labs'] },
      { match: '*', to: ['archive'] },
    ];
  });
  expect(await receiver.reload()).toMatchObject(RELOADED);
  secret = NEW_SECRET;
  await more(50);
  place.edit((config) => (config.signing.secrets = [NEW_SECRET]));
  expect(await receiver.reload()).toMatchObject(RELOADED);
  await more(50);
  stop.abort();
  await load;
  expect([...statuses]).toEqual([202]);
  expect((await receiver.post(undefined, { secret: SECRET })).status).toBe(401);
  await receiver.drained();
  await receiver.stop();
  const labs = await place.archived('labs');
  const found = new Map([...(await place.archived()), ...labs]);
  expectConserved(found, acknowledged);
  expectOnce(found);
  expect(labs.size).toBeGreaterThan(0);
  for (const [copy] of labs.values()) expect(copy?.record.event_type).toMatch(/^(labtest|lab_report)\./);
});

test('a config that cannot be used changes nothing, and the log says why', async () => {
  const place = await Place.make();
  const receiver = await place.start();
  const failed = { msg: 'reload failed; the previous config stays in force' };
  place.edit((config) => (config.routes = [{ match: '*', to: ['nowhere'] }]));
  expect(await receiver.reload()).toMatchObject(failed);
  expect(receiver.stderr).toContain('nowhere');
  writeFileSync(place.at('a-file'), '');
  place.edit((config) => {
    delete config.routes;
    config.sinks.extra = { type: 'files', path: place.at('a-file', 'below') };
    config.sinks.archive.compress = 'none';
  });
  expect(await receiver.reload()).toMatchObject(failed);
  await receiver.send(1);
  await receiver.drained();
  await receiver.stop();
  const files = [...(await place.archived()).values()].flat().map(({ file }) => file);
  expect(files).toEqual([expect.stringMatching(/\.ndjson\.gz$/)]);
});

test('a SIGHUP that comes before it listens is heeded once it does', async () => {
  const type = join(import.meta.dirname, 'gated-sink.ts');
  const place = await Place.make((folder) => ({ sinks: { gated: { type, folder, opens: 'at the gate' } } }));
  const receiver = new Receiver(place.config);
  await until('the sink to be opened', () => existsSync(place.at('opening')));
  receiver.signal('SIGHUP');
  writeFileSync(place.at('gate'), '');
  await receiver.listening();
  await until('the line "reloaded"', () => receiver.logLines().some(({ msg }) => msg === 'reloaded'));
  expect((await receiver.post()).status).toBe(202);
});
