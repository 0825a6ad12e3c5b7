import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kill } from 'node:process';
import { expect, onTestFinished, test } from 'vitest';
import { newMasterKey } from '../../src/seal/master-key.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { childEnvironment, MAIN, millrace } from '../support/millrace.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { Fleet, type FleetOptions } from './fleet.ts';
import { keysIn, opened } from './unseal.js';

const body = (user: string, type: string): Buffer =>
  Buffer.from(JSON.stringify({ event_type: type, team_id: 'team', user_id: user, client_user_id: user }));

const topicsOf = (fleet: Fleet): string[] =>
  ['events', 'quarantine', 'dead-letters'].map((name) => `${fleet.name}.${name}`);

const eraseWith = async (fleet: Fleet, name: string): Promise<string> => {
  const { code, stdout, stderr } = await millrace(['erase', 'gone', '--now', '--config', fleet.config(name)]);
  // Done, but for what is not sealed, which nobody can search.
  expect({ code, stderr }).toEqual({
    code: 3,
    stderr: expect.not.stringContaining('not erased') as unknown,
  });
  return `${stdout}${stderr}`;
};

describeOnKafka('a fleet whose topics are sealed', {}, ({ addresses, oracle }) => {
  const master = newMasterKey();
  const makeFleet = async (options: Partial<FleetOptions> = {}): Promise<{ fleet: Fleet; keys: string }> => {
    const folder = options.folder ?? (await temporaryFolder());
    const keys = join(folder, 'keys-of-all');
    const journal = { encrypt: { store: keys, masterKey: master } };
    const fleet = new Fleet({
      folder,
      addresses,
      oracle,
      sinks: ['one'],
      session: '2s',
      journal,
      ...options,
    });
    await fleet.createTopics();
    onTestFinished(() => fleet.stop());
    return { fleet, keys };
  };

  const readAll = async (fleet: Fleet) =>
    (await Promise.all(topicsOf(fleet).map((topic) => oracle.read(topic)))).flat();
  test('nothing of who was erased can be read, by two at once; the others have all, in order, once', async () => {
    const folder = await temporaryFolder();
    const holds = join(folder, 'holds');
    const sink = { refuse: 'unwanted.created', holds, only: 'one' };
    const { fleet, keys } = await makeFleet({ folder, sink });
    fleet.envelope = { teams: ['team'] };
    const both = [await fleet.start('b1', 'both'), await fleet.start('b2', 'both')];
    const urls = (): string[] => both.map(({ url }) => url);
    for (const user of ['gone', 'stays']) {
      await postSigned(both[0]!.url, body(user, 'unwanted.created'), { id: `msg_refused_${user}` });
      const foreign = Buffer.from(String(body(user, 'a.created')).replace('"team"', '"other"'));
      expect((await postSigned(both[1]!.url, foreign, { id: `msg_foreign_${user}` })).json['status']).toBe(
        'quarantined',
      );
    }
    await until('both dead letters', async () => (await oracle.read(topicsOf(fleet)[2]!)).length === 2);
    // These wait, opened, in the memory of those that deliver.
    writeFileSync(holds, '');
    for (let n = 0; n < 4; n += 1) for (const user of ['gone', 'stays']) await fleet.send(user, urls, 1);
    await until('the sink to be tried', async () => {
      const all = await Promise.all(both.map(async (each) => (await each.status()).sinks[0]?.retried ?? 0));
      return all.some((retried) => retried > 0);
    });
    const before = await readAll(fleet);
    for (const { key, value, headers } of before)
      for (const word of ['gone', 'stays', 'team', 'created'])
        expect(
          `${key?.toString('latin1')}${value?.toString('latin1')}${JSON.stringify(headers)}`,
        ).not.toContain(word);
    const sent = before.length;
    expect(opened(before, keysIn(keys, master))).toBe(sent);

    // By two of which neither knows of the other, nor do those who deliver.
    const said = await Promise.all([eraseWith(fleet, 'x1'), eraseWith(fleet, 'x2')]);
    for (const text of said) expect(text).toMatch(/what it had that names no user, or was not sealed/);
    await eraseWith(fleet, 'x1');
    const left = keysIn(keys, master);
    expect(opened(before, left)).toBe(sent / 2);
    expect(opened(await readAll(fleet), left)).toBe(sent / 2);

    rmSync(holds);
    for (let n = 0; n < 3; n += 1) await fleet.send('stays', urls, 1);
    await until(
      'all of the other',
      () => fleet.given('one').filter((id) => id.includes('stays')).length >= 8,
    );
    await Promise.all(both.map((each) => each.kill('SIGTERM')));
    // From the log, of which a half cannot be opened; and what came before is known.
    both.splice(0, 2, await fleet.start('b3', 'both'));
    const again = Buffer.from(
      JSON.stringify({
        event_type: 'daily.data.steps.updated',
        team_id: 'team',
        user_id: 'stays',
        client_user_id: 'stays',
        number: 2,
      }),
    );
    expect((await postSigned(both[0]!.url, again, { id: 'msg_stays_2' })).status).toBe(202);
    await fleet.send('stays', urls, 1);
    await until('the last', () => fleet.given('one').includes('msg_stays_8'));
    const ids = fleet.given('one').filter((id) => !id.includes('refused'));
    expect(ids).toEqual(Array.from({ length: 8 }, (_, n) => `msg_stays_${n + 1}`));
    for (const what of ['quarantine', 'dead-letters']) {
      const { stdout } = await millrace([what, 'list', '--json', '--config', fleet.config('x1')]);
      const found = stdout.split('\n').filter((line) => line !== '');
      expect(found.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual([
        what === 'quarantine' ? 'msg_foreign_stays' : 'msg_refused_stays',
      ]);
    }
    await millrace(['dead-letters', 'retry', '--all', '--config', fleet.config('x1')]);
    await until('it again', () => fleet.given('one').filter((id) => id === 'msg_refused_stays').length === 2);
  });

  test('who erases is killed, who delivers stands still: it is completed, and nothing of the user is sent', async () => {
    const folder = await temporaryFolder();
    const holds = join(folder, 'holds');
    const { fleet, keys } = await makeFleet({ folder, sink: { holds, only: 'one' } });
    writeFileSync(holds, '');
    const zombie = await fleet.start('d1', 'both');
    for (const user of ['gone', 'stays'])
      for (let n = 0; n < 3; n += 1) await fleet.send(user, () => [zombie.url]);
    await until('the sink to be tried', async () => (await zombie.status()).sinks[0]?.retried !== 0);
    kill(zombie.pid, 'SIGSTOP');
    const args = [MAIN, 'erase', 'gone', '--now', '--config', fleet.config('x1')];
    const erasing = spawn(process.execPath, args, { env: childEnvironment(), stdio: 'ignore' });
    await until('keys to be listed', () => existsSync(join(keys, 'destroyed')));
    erasing.kill('SIGKILL');
    expect(await once(erasing, 'exit')).toEqual([null, 'SIGKILL']);
    const { code } = await millrace(['erase', '--run', '--config', fleet.config('x1')]);
    expect(code).toBe(3);
    expect(opened(await oracle.read(fleet.topic), keysIn(keys, master))).toBe(3);
    rmSync(holds);
    kill(zombie.pid, 'SIGCONT');
    await until('the others', () => fleet.given('one').length >= 3);
    await fleet.send('stays', () => [zombie.url]);
    await until('what came behind', () => fleet.given('one').includes('msg_stays_4'));
    expect(fleet.given('one').filter((id) => id.includes('gone'))).toEqual([]);
  });

  test('without the keys, or with others, nothing is passed over', async () => {
    const { fleet } = await makeFleet();
    const receiver = await fleet.start('r1', 'receive');
    await fleet.send('u', () => [receiver.url]);
    const { encrypt: _, ...journal } = fleet.journal as { encrypt: object };
    const other = join(fleet.folder, 'others');
    for (const [encrypt, why] of [
      [{}, 'journal.encrypt is missing'],
      [{ store: other, masterKey: master }, 'has no key'],
    ] as const) {
      const unsealed = new Fleet({
        folder: await temporaryFolder(),
        addresses,
        oracle,
        sinks: ['one'],
        journal: { ...journal, encrypt },
      });
      onTestFinished(() => unsealed.stop());
      if ('store' in encrypt)
        expect((await millrace(['keys', 'begin', '--config', unsealed.config('d1')])).code).toBe(0);
      const deliverer = await unsealed.start('d1', 'deliver');
      await until('it to say so', () => deliverer.stderr.includes(why));
      await deliverer.kill('SIGKILL');
    }
    await fleet.start('d1', 'deliver');
    await until('it to be delivered', () => fleet.isDelivered);
    expect(fleet.given('one')).toEqual(['msg_u_1']);
  });

  test('an empty folder in place of the keys is no place: 503, no receipt; nothing is lost', async () => {
    const { fleet, keys } = await makeFleet();
    const receiver = await fleet.start('r1', 'receive');
    await fleet.send('gone', () => [receiver.url]);
    renameSync(keys, `${keys}.away`);
    mkdirSync(keys);
    const post = (user: string, id: string) => postSigned(receiver.url, body(user, 'a.created'), { id });
    expect((await post('new', 'msg_new_1')).status).toBe(503);
    let n = 0;
    await until('what it knows to be refused too', async () => {
      n += 1;
      return (await post('gone', `msg_gone_away_${n}`)).status === 503;
    });
    const erasing = await millrace(['erase', 'gone', '--now', '--config', fleet.config('x1')]);
    expect({ code: erasing.code, receipt: erasing.stdout.includes('receipt') }).toEqual({
      code: 1,
      receipt: false,
    });
    expect(erasing.stderr).toContain('is it mounted?');
    expect(readdirSync(keys)).toEqual([]);
    renameSync(keys, `${keys}.under`);
    renameSync(`${keys}.away`, keys);
    await until('it to receive', async () => (await post('new', 'msg_new_1')).status === 202);
    const all = await oracle.read(fleet.topic);
    expect(all.length).toBeGreaterThan(1);
    expect(opened(all, keysIn(keys, master))).toBe(all.length);
    await eraseWith(fleet, 'x1');
    expect(opened(all, keysIn(keys, master))).toBe(1);
  });

  test('is replayed, each event once, from where it was interrupted', async () => {
    const { fleet } = await makeFleet({ sinks: ['one', 'two'], sink: { refuse: 'unwanted.created' } });
    fleet.envelope = { teams: ['other'] };
    const strict = await fleet.start('b0', 'both');
    await postSigned(strict.url, body('user-0', 'a.created'), { id: 'msg_released' });
    await strict.kill('SIGTERM');
    fleet.envelope = {};
    const both = [await fleet.start('b1', 'both'), await fleet.start('b2', 'receive')];
    const config = fleet.config('x1');
    await millrace(['quarantine', 'retry', '--all', '--config', config]);
    await postSigned(both[0]!.url, body('user-0', 'unwanted.created'), { id: 'msg_refused' });
    const users = ['gone', 'user-1', 'user-2', 'user-3'];
    // Repeated to the other one: twice in the topic.
    for (let n = 0; n < 10; n += 1)
      await Promise.all(users.map((user) => fleet.send(user, () => both.map(({ url }) => url), 1)));
    await until('all to be delivered', () => fleet.isDelivered);
    await until('the dead letters', async () => (await oracle.read(topicsOf(fleet)[2]!)).length === 2);
    await millrace(['dead-letters', 'retry', '--all', '--config', config]);
    await until('them again', () => fleet.given('two').filter((id) => id === 'msg_refused').length === 2);
    for (const each of both) await each.kill('SIGTERM');
    await eraseWith(fleet, 'x1');

    const before = fleet.given('two').length;
    const replayed = (): string[] => fleet.given('two').slice(before);
    const replay = ['replay', 'journal', '--to', 'two', '--config', config];
    const stop = new AbortController();
    const interrupted = millrace([...replay, '--rate', '20/s'], { signal: stop.signal });
    await until('some', () => replayed().length >= 8);
    stop.abort();
    expect((await interrupted).code).toBe(3);
    expect(replayed().length).toBeLessThan(30);
    expect((await millrace([...replay, '--resume', '--json'])).stdout).toContain('"erased":10');
    const own = users
      .slice(1)
      .flatMap((user) => Array.from({ length: 10 }, (_, n) => `msg_${user}_${n + 1}`));
    expect([...new Set(replayed())].toSorted()).toEqual([...own, 'msg_released', 'msg_refused'].toSorted());
    expect(replayed().length).toBeLessThan(32 + 8);
    for (const user of users.slice(1)) {
      const first = [...new Set(replayed())].filter((id) => id.includes(user));
      expect(first).toEqual(own.filter((id) => id.includes(user)));
    }
    const count = async (...filter: string[]): Promise<number> => {
      const { stdout } = await millrace([...replay, '--dry-run', '--json', ...filter]);
      return (JSON.parse(stdout) as { selected: number }).selected;
    };
    expect(await count('--user', 'user-2')).toBe(10);
    expect(await count('--type', 'daily.', '--user', 'user-0')).toBe(0);
    expect(await count('--type', 'unwanted.')).toBe(1);
    const hour = 3_600_000;
    expect(await count('--since', new Date(Date.now() - hour).toISOString())).toBe(32);
    expect(await count('--since', new Date(Date.now() + hour).toISOString())).toBe(0);
    expect(await count('--until', new Date(Date.now() - hour).toISOString())).toBe(0);
    // What the brokers have deleted before the replay begins is no part of it.
    const [first] = await oracle.read(fleet.topic);
    await oracle.trim(fleet.topic, first?.partition ?? 0, 1);
    expect(await count()).toBeGreaterThan(20);
  });
});
