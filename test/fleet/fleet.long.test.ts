import { existsSync, readFileSync, writeFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ServeProcess } from '../support/serve-process.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { bodyOf, Fleet, type FleetOptions } from './fleet.ts';

const body = (fields: object): Buffer => bodyOf('u', fields);
const halfSecret = (n: number): Buffer => body({ data: { name: `hidden-${n}`, code: `shown-${n}` } });

describeOnSharedKafka('a journal on Kafka', (kafka) => {
  const { oracle } = kafka;
  const makeFleet = (options: Partial<FleetOptions> = {}): Promise<Fleet> =>
    Fleet.make(kafka, { session: '6s', ...options });

  test('what the routes redact does not leave, nor what a route that is gone had redacted when the event came', async () => {
    const fleet = await makeFleet();
    const { folder } = fleet;
    const type = join(import.meta.dirname, '../process/dump-sink.ts');
    const routed = (...routes: object[]): string =>
      writeConfig(folder, {
        journal: fleet.journal,
        sinks: { dump: { type, folder } },
        envelope: { userIds: 'text' },
        routes,
      });
    const dumped = (): string =>
      existsSync(join(folder, 'dump')) ? readFileSync(join(folder, 'dump'), 'utf8') : '';
    const first = new ServeProcess(routed({ match: '*', to: 'dump', redact: '/data/name' }), { args: [] });
    await first.listening();
    expect((await postSigned(first.url, halfSecret(1))).json['status']).toBe('accepted');
    await until('the first event', () => dumped().includes('shown-1'));
    writeFileSync(join(folder, 'closed'), '');
    expect((await postSigned(first.url, halfSecret(2))).json['status']).toBe('accepted');
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
    rmSync(join(folder, 'closed'));
    const second = new ServeProcess(routed({ match: 'labtest.', to: 'dump' }), { args: [] });
    onTestFinished(async () => void (await second.kill('SIGKILL')));
    await until('the second event', () => dumped().includes('shown-2'));
    const config = join(folder, 'millrace.yaml');
    const played = await millrace(['replay', 'journal', '--to', 'dump', '--config', config]);
    expect(played.code, played.stderr).toBe(0);
    expect(dumped().match(/shown-1/g)).toHaveLength(2);
    expect(dumped()).not.toContain('hidden');
  });

  test('repeated to another receiver, also after all were killed: each event is at each sink once, in order', async () => {
    const fleet = await makeFleet({ sinks: ['one'], session: '3s' });
    const receivers: Serving[] = [await fleet.start('r1', 'receive'), await fleet.start('r2', 'receive')];
    const deliverer = await fleet.startInside('d1', 'deliver');
    const urls = (): string[] => receivers.map(({ url }) => url);
    const users = Array.from({ length: 6 }, (_, n) => `user-${n}`);
    const send = (): Promise<unknown> =>
      Promise.all(
        users.map(async (user) => {
          for (let n = 0; n < 5; n += 1) await fleet.send(user, urls, 1);
        }),
      );
    await send();
    await until('all to be delivered', () => fleet.isDelivered);
    expect(await deliverer.kill('SIGTERM')).toMatchObject({ code: 0 });
    for (const each of receivers) await each.kill('SIGKILL');
    // In one process, which knows of nothing but the topics.
    const both = await fleet.startInside('b1', 'both');
    const again = bodyOf('user-1', { number: 1 });
    expect((await postSigned(both.url, again, { id: 'msg_user-1_1' })).json['status']).toBe('accepted');
    expect((await postSigned(both.url, again, { id: 'msg_user-1_1' })).json['status']).toBe('duplicate');
    receivers.splice(0, 2, both);
    await send();
    await until('all to be delivered', () => fleet.isDelivered);
    expect(await both.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(fleet.judge()).toMatchObject({ ok: true });
    expect(fleet.given('one')).toHaveLength(60);
    const status = await millrace(['status', '--json', '--config', fleet.config('b1')]);
    expect(JSON.parse(status.stdout)).toMatchObject({
      journal: { path: `kafka:${fleet.topic}`, events: 91, cursors: [{ backlog: 0 }] },
    });
  });

  test('what is set aside lies in topics, for the commands of anybody', async () => {
    const fleet = await makeFleet({ sinks: ['one'], sink: { refuse: 'unwanted.created' } });
    const both = await fleet.startInside('b1', 'both');
    const run = async (...args: string[]): Promise<void> => {
      const { code, stderr } = await fleet.run(...args);
      expect(code, stderr).toBe(0);
    };
    const list = (what: 'quarantine' | 'dead-letters') => fleet.listed(what);
    for (const [id, bytes] of [
      ['msg_bad', Buffer.from('[]')],
      ['msg_good', body({})],
      ['msg_refused', body({ event_type: 'unwanted.created' })],
    ] as const)
      expect((await postSigned(both.url, bytes, { id })).status).toBe(202);
    // The id of another event, with other bytes: found where the log is read.
    await postSigned(both.url, body({ other: true }), { id: 'msg_good' });
    await until('what is set aside', async () => {
      const [kept, dead] = [await list('quarantine'), await list('dead-letters')];
      return kept.length === 2 && dead.length === 1;
    });
    expect((await list('quarantine')).map(({ id }) => id).toSorted()).toEqual(['msg_bad', 'msg_good']);
    expect(fleet.given('one').toSorted()).toEqual(['msg_good', 'msg_refused']);

    await run('dead-letters', 'retry', '--all');
    await until('it to be refused again', () => fleet.given('one').length >= 3);
    await until('its dead letter', async () => (await list('dead-letters')).length === 1);
    await run('dead-letters', 'drop', '--all');
    expect(await list('dead-letters')).toEqual([]);
    const reused = (await list('quarantine')).find(({ id }) => id === 'msg_good');
    await run('quarantine', 'retry', String(reused?.key));
    await until(
      'the one that a person has named',
      () => fleet.given('one').filter((id) => id === 'msg_good').length === 2,
    );
    expect((await list('quarantine')).map(({ id }) => id)).toEqual(['msg_bad']);
    await both.kill('SIGTERM');

    const erased = await fleet.run('erase', 'u', '--now');
    expect(erased.stdout + erased.stderr).toMatch(
      /topic f\w+\.events: the brokers keep what it had until \d{4}-/,
    );
    for (const [args, why] of [
      [['sink', 'drop', 'one'], 'journal.type: local'],
      [['drain', '--journal', 'x'], 'journal.type: kafka'],
    ] as const) {
      const { code, stderr } = await fleet.run(...args);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(why) as unknown });
    }
  });

  test('a sink that is in trouble holds up no other, and has what it missed when it is well again', async () => {
    const folder = await temporaryFolder();
    const holds = join(folder, 'holds');
    const fleet = await makeFleet({ folder, sink: { holds, only: 'two' } });
    writeFileSync(holds, '');
    const both = await fleet.startInside('b1', 'both');
    for (let n = 0; n < 5; n += 1) await fleet.send('user', () => [both.url]);
    await until('one to have all', () => fleet.given('one').length === 5);
    expect(fleet.given('two')).toEqual([]);
    const cursors = async (): Promise<unknown> => (await both.status()).journal.cursors;
    await until('the status to say for how long', async () => {
      const [one, two] = (await cursors()) as { backlog: number; backlogAge: number }[];
      return one?.backlog === 0 && one.backlogAge === 0 && two?.backlog === 5 && two.backlogAge > 1000;
    });
    rmSync(holds);
    await until('both to have all', () => fleet.isDelivered);
    await until('nothing to wait', async () => {
      const left = (await cursors()) as { backlog: number; backlogAge: number }[];
      return left.every(({ backlog, backlogAge }) => backlog === 0 && backlogAge === 0);
    });
    expect(fleet.judge()).toMatchObject({ ok: true });
  });

  test('what waits for a sink in trouble is not sent after its user is erased', async () => {
    const folder = await temporaryFolder();
    const holds = join(folder, 'holds');
    const fleet = await makeFleet({ folder, sinks: ['one'], sink: { holds, only: 'one' } });
    writeFileSync(holds, '');
    const both = await fleet.startInside('b1', 'both');
    const config = fleet.config('b1');
    for (let n = 0; n < 5; n += 1) await fleet.send('gone', () => [both.url]);
    await until('the sink to be tried', async () => (await both.status()).sinks[0]?.retried !== 0);
    const erased = await millrace(['erase', 'gone', '--now', '--config', config]);
    expect(erased.stdout + erased.stderr).toContain('the brokers keep what it had until');
    rmSync(holds);
    await fleet.send('stays', () => [both.url]);
    await until('nothing to wait', async () => {
      const { stdout } = await millrace(['status', '--json', '--config', config]);
      return JSON.parse(stdout).journal.cursors[0].backlog === 0;
    });
    expect(fleet.given('one')).toEqual(['msg_stays_1']);
  });

  test('what was retried from quarantine is known when it comes again', async () => {
    const fleet = await makeFleet({ sinks: ['one'] });
    fleet.envelope = { teams: ['other'] };
    const strict = await fleet.startInside('b1', 'both');
    const ids = ['msg_1', 'msg_2'];
    for (const id of ids)
      expect((await postSigned(strict.url, body({}), { id })).json['status']).toBe('quarantined');
    await strict.kill('SIGTERM');
    fleet.envelope = {};
    expect(await fleet.run('quarantine', 'retry', '--all')).toMatchObject({ code: 0 });
    // By who has read its record, and by who has it from the log.
    for (const [name, records] of [
      ['b2', 4],
      ['b3', 6],
    ] as const) {
      const both = await fleet.startInside(name, 'both');
      for (const id of ids)
        expect((await postSigned(both.url, body({}), { id })).json['status']).toBe('accepted');
      await until('all to be looked at', async () => (await fleet.past('one')) === records);
      await both.kill('SIGTERM');
    }
    expect(fleet.given('one').toSorted()).toEqual(ids);
  });

  test('each known id with other bytes is set aside, also long after the first', async () => {
    const fleet = await makeFleet({ sinks: ['one'] });
    const both = await fleet.startInside('b1', 'both');
    const list = async (): Promise<number> => (await fleet.listed('quarantine')).length;
    for (let n = 1; n <= 3; n += 1) {
      await postSigned(both.url, body({ n }), { id: `msg_${n}` });
      await until('the first to be delivered', () => fleet.given('one').length === n);
      await postSigned(both.url, body({ other: n }), { id: `msg_${n}` });
      await until('the other to be set aside', async () => (await list()) === n);
    }
    await until('the keeper to be past all', async () => (await fleet.past('_window')) === 6);
    expect(fleet.given('one')).toEqual(['msg_1', 'msg_2', 'msg_3']);
  });

  test('whatever is accepted can become a dead letter, however large it is', async () => {
    const sink = { refuse: 'unwanted.created' };
    const fleet = await makeFleet({ sinks: ['one'], sink, journal: { maxEventBytes: '64KiB' } });
    const both = await fleet.startInside('b1', 'both');
    let [accepted, least, most] = [0, 30_000, 65_536];
    while (most - least > 1) {
      const size = Math.floor((least + most) / 2);
      const bytes = body({ event_type: 'unwanted.created', pad: '' });
      const padded = body({ event_type: 'unwanted.created', pad: 'x'.repeat(size - bytes.length) });
      const { status } = await postSigned(both.url, padded, { id: `msg_${size}` });
      expect([202, 413]).toContain(status);
      if (status === 202) [accepted, least] = [accepted + 1, size];
      else most = size;
    }
    await postSigned(both.url, body({}), { id: 'msg_behind' });
    await until('what came behind it', () => fleet.given('one').includes('msg_behind'));
    const list = async (): Promise<number> => (await fleet.listed('dead-letters')).length;
    await until('a dead letter of each', async () => (await list()) === accepted);
    await fleet.run('dead-letters', 'retry', '--all');
    await until('all to be refused once more', () => fleet.given('one').length === 2 * accepted + 1);
    await until('their dead letters', async () => (await list()) === accepted);
  });

  test('a dead letter that several retry at once is sent once', async () => {
    const fleet = await makeFleet({ sinks: ['one'], sink: { refuse: 'unwanted.created' } });
    const both = await fleet.startInside('b1', 'both');
    const config = fleet.config('b1');
    const status = async (): Promise<{
      deadLetters: number;
      events: number;
      cursors: { backlog: number }[];
    }> => JSON.parse((await millrace(['status', '--json', '--config', config])).stdout).journal;
    await postSigned(both.url, body({ event_type: 'unwanted.created' }), { id: 'msg_1' });
    await until('the dead letter', async () => (await status()).deadLetters === 1);
    const retry = ['dead-letters', 'retry', '--all', '--config', config];
    await millrace(retry);
    // As other processes write it that read the dead letter at the same time.
    const again = (await oracle.read(fleet.topic)).find(({ headers }) =>
      headers['millrace']?.includes('"again"'),
    );
    for (let n = 0; n < 2; n += 1)
      await oracle.write(fleet.topic, again?.key ?? null, again?.value ?? null, again?.headers);
    await until('all to be looked at', async () => {
      const { deadLetters, events, cursors } = await status();
      return deadLetters === 1 && events >= 4 && cursors[0]?.backlog === 0;
    });
    expect(fleet.given('one')).toEqual(['msg_1', 'msg_1']);
    // The second refusal makes another dead letter.
    await millrace(retry);
    await until('it to be sent', () => fleet.given('one').length === 3);
  });

  test('says which topic is missing, and when the topics do not agree', async () => {
    const fleet = new Fleet(kafka, { folder: await temporaryFolder() });
    const config = fleet.config('x');
    const status = await millrace(['status', '--config', config]);
    expect(status).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`topic ${fleet.topic}: it does not exist`) as unknown,
    });
    await fleet.createTopics();
    const wrong = [
      ['topic', 'cleanup.policy=compact'],
      ['deadLetterTopic', 'cleanup.policy=delete'],
      ['quarantineTopic', 'max.message.bytes=1000'],
      ['windowTopic', 'retention.ms=3600000'],
    ] as const;
    const journal = Object.fromEntries(wrong.map(([key]) => [key, `${fleet.name}.${key}`]));
    for (const [key, setting] of wrong) await oracle.create(`${fleet.name}.${key}`, 3, 1, setting);
    const careless = await makeFleet({ journal });
    const { stderr } = await careless.start('b1', 'both');
    for (const danger of [
      /of each user only the last/,
      /what waits for a person/,
      /max.message.bytes is 1000/,
      /retention.ms is 3600000, less than journal.dedupWindow/,
    ])
      expect(stderr).toMatch(danger);
    await oracle.grow(fleet.topic, 5);
    const grown = await millrace(['status', '--config', config]);
    expect(grown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('they must be as many') as unknown,
    });
  });
});
