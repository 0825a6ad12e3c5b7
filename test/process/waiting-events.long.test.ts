import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { TEAM } from '../support/events.ts';
import { Place, saying } from '../support/place.ts';
import { expectConserved, expectWhole } from '../support/read-back.ts';
import { SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

test('quarantine: kept, shown, retried after a change of the config, dropped; with and without a receiver', async () => {
  const place = await Place.make({ envelope: { teams: [TEAM] } });
  const inBox = (...args: string[]) => place.documents('quarantine', ...args);
  const receiver = await place.start();
  const foreign = [madeUpEvent(0), madeUpEvent(1), madeUpEvent(2)];
  for (const { id, body } of foreign)
    expect(await receiver.post(body, { id })).toMatchObject({
      status: 202,
      json: { status: 'quarantined', id, code: 'team_foreign' },
    });
  // Through the receiver, which still finds them invalid.
  expect(await inBox('list')).toMatchObject(foreign.map(({ id }) => ({ id })));
  expect(await inBox('retry', '--all')).toEqual([{ retried: 0, kept: 3 }]);
  const slip = { ...saying(2, 'quarantine has no 99; nothing was changed'), stdout: '' };
  expect(await place.run('quarantine', 'drop', '3', '99')).toMatchObject(slip);
  expect(await inBox('drop', '3')).toEqual([{ dropped: 1 }]);
  await receiver.stop();

  // On the journal itself, once the config has changed.
  place.write({});
  expect(await place.json('quarantine', 'show', '1')).toMatchObject({
    key: 1,
    id: foreign[0]?.id,
    reasons: [{ code: 'team_foreign' }],
    body_base64: foreign[0]?.body.toString('base64'),
  });
  expect(await inBox('retry', '1')).toEqual([{ retried: 1, kept: 0 }]);
  expect(await inBox('list')).toHaveLength(1);

  // And through the receiver that runs with it.
  const next = await place.start();
  expect(await inBox('retry', '--all')).toEqual([{ retried: 1, kept: 0 }]);
  expect(await inBox('list')).toEqual([]);
  await next.drained();
  await next.stop();
  expectConserved(await place.archived(), new Map(foreign.slice(0, 2).map(({ id, body }) => [id, body])));
  await expectWhole(place.at('archive'));
});

const GATED = join(import.meta.dirname, 'gated-sink.ts');

test('dead letters: kept, listed, retried, dropped; with and without a receiver', async () => {
  const place = await Place.make((folder) => ({
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      picky: { type: GATED, folder, shut: 'is taken', limits: { eventBytes: 10 } },
    },
  }));
  const inBox = (...args: string[]) => place.documents('dead-letters', ...args);
  const receiver = await place.start();
  const sent = await receiver.send(2);
  expect((await receiver.drained()).journal).toMatchObject({ deadLetters: 2 });
  expect(await inBox('list')).toMatchObject(
    Array.from(sent.keys(), (id) => ({ id, sink: 'picky', code: 'too_large' })),
  );
  expect(await inBox('list', '--sink', 'archive')).toEqual([]);
  await receiver.stop();

  place.edit(({ sinks }) => (sinks.picky.limits = {}));
  expect(await inBox('drop', '2')).toEqual([{ dropped: 1 }]);
  expect(await inBox('retry', '--all')).toEqual([{ retried: 1, kept: 0 }]);
  const next = await place.start();
  expect((await next.drained()).journal).toMatchObject({ deadLetters: 0 });
  const delivered = { sink: 'picky', delivered: 1 };
  expect((await next.status()).sinks).toContainEqual(expect.objectContaining(delivered));
  await next.stop();
  // Only the sink that had refused it got it again.
  const found = await place.archived();
  expect([...found.values()].map((copies) => copies.length)).toEqual([1, 1]);
});

test('status says the same with and without a receiver', async () => {
  const place = await Place.make();
  const receiver = await place.startProcess();
  await receiver.send(1);
  await receiver.drained();
  expect(await place.json('status')).toMatchObject({
    pid: receiver.pid,
    journal: { events: 1, quarantined: 0 },
  });
  expect(await place.ok('status')).toContain(`process ${receiver.pid}`);
  await receiver.stop();
  const stopped = { pid: null, journal: { events: 1, lastSeq: 1, quarantined: 0 }, sinks: [] };
  expect(await place.json('status')).toMatchObject(stopped);
  expect(await place.ok('status')).toContain('not running');
  // After kill -9 the note of the owner is stale, and a process that is gone is not asked.
  await (await place.startProcess()).kill('SIGKILL');
  expect(await place.json('status')).toMatchObject({ pid: null });
});

test('status without an admin listener says what is in the way', async () => {
  const place = await Place.make({ admin: { enabled: false } });
  const { pid } = await place.startProcess();
  const { code, stderr } = await place.run('status');
  expect(code).toBe(1);
  for (const said of [`process ${pid}`, 'admin.enabled']) expect(stderr).toContain(said);
});

const invalid = (count: number) => ({ refused: count, codes: { signature_invalid: count } });

test('a wrong secret shows in the log, in status and on the console, by reason', async () => {
  const secret = `whsec_${Buffer.from('another secret of the tests only').toString('base64')}`;
  const place = await Place.make({ signing: { secrets: [SECRET] } });
  const receiver = await place.start();
  for (let n = 0; n < 12; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await receiver.post(body, { id, secret })).status).toBe(401);
  }
  await receiver.send(1, 100);
  const refused = { signature_invalid: 12 };
  await until('all refusals in status', async () => {
    const { receiving } = await receiver.status();
    return receiving?.refused['signature_invalid'] === 12;
  });
  const shown = await place.ok('status');
  expect(shown).toMatch(/^refused +since the start at \d{4}-\S+Z: 12 signature_invalid$/m);
  expect(shown).toMatch(/^connections +\d+ of 10000; 0 idle ones closed to make room, 0 rejected$/m);
  const state = await (await receiver.ask('/api/console?since=0&after=0')).json();
  expect(state).toMatchObject({ receiving: { refused } });
  const warnings = () => receiver.logLines().filter(({ msg }) => msg === 'deliveries refused');
  expect(warnings()).toMatchObject([{ level: 40, ...invalid(1), last: 'no signature matches any secret' }]);
  await receiver.stop();
  expect(warnings().slice(1)).toMatchObject([invalid(11)]);
});
