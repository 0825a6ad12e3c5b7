import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kill } from 'node:process';
import { expect, onTestFinished, test } from 'vitest';
import { newMasterKey } from '../../src/seal/master-key.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { childEnvironment, MAIN, millrace } from '../support/millrace.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { Fleet, type FleetOptions } from './fleet.ts';
import { keysIn, opened } from './unseal.js';

const body = (user: string, type: string): Buffer =>
  Buffer.from(JSON.stringify({ event_type: type, team_id: 'team', user_id: user, client_user_id: user }));

const topicsOf = (fleet: Fleet): string[] =>
  ['events', 'quarantine', 'dead-letters'].map((name) => `${fleet.name}.${name}`);

const eraseWith = async (fleet: Fleet, name: string): Promise<void> => {
  const { code, stderr } = await millrace(['erase', 'gone', '--now', '--config', fleet.config(name)]);
  // What a sink of the test has is not ours to erase, and named as `not reached`.
  const complete = expect.not.stringMatching(/^not (erased|searched)/m) as unknown;
  expect({ code, stderr }).toEqual({ code: 0, stderr: complete });
};

describeOnSharedKafka('a fleet whose topics are sealed', ({ addresses, oracle }) => {
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
    (await Promise.all(topicsOf(fleet).map((topic) => oracle.read(topic))))
      .flat()
      .filter(({ key }) => key?.toString().startsWith('millrace-keys/') !== true);

  test('nothing of who was erased can be read, by two at once; the others have all, in order, once', async () => {
    const folder = await temporaryFolder();
    const holds = join(folder, 'holds');
    const sink = { refuse: 'unwanted.created', holds, only: 'one' };
    const { fleet, keys } = await makeFleet({ folder, sink });
    fleet.envelope = { teams: ['team'] };
    const both = [await fleet.startInside('b1', 'both'), await fleet.startInside('b2', 'both')];
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
    await Promise.all([eraseWith(fleet, 'x1'), eraseWith(fleet, 'x2')]);
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
    both.splice(0, 2, await fleet.startInside('b3', 'both'));
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
    expect(code).toBe(0);
    expect(opened(await oracle.read(fleet.topic), keysIn(keys, master))).toBe(3);
    rmSync(holds);
    kill(zombie.pid, 'SIGCONT');
    await until('the others', () => fleet.given('one').length >= 3);
    await fleet.send('stays', () => [zombie.url]);
    await until('what came behind', () => fleet.given('one').includes('msg_stays_4'));
    expect(fleet.given('one').filter((id) => id.includes('gone'))).toEqual([]);
    // Nobody here knows that the user is erased. What comes again is no repetition of what nobody can open any more.
    const again = Buffer.from(
      JSON.stringify({
        event_type: 'daily.data.steps.updated',
        team_id: 'team',
        user_id: 'gone',
        client_user_id: 'gone',
        number: 1,
      }),
    );
    for (let n = 0; n < 2; n += 1)
      expect((await postSigned(zombie.url, again, { id: 'msg_gone_1' })).status).toBe(202);
    await fleet.send('gone', () => [zombie.url]);
    await until('what came last', () => fleet.given('one').includes('msg_gone_4'));
    expect(fleet.given('one').filter((id) => id.includes('gone'))).toEqual(['msg_gone_1', 'msg_gone_4']);
  });

  test('without the keys, or with others, nobody starts, and what is plain is delivered up to what is sealed', async () => {
    const { fleet, keys } = await makeFleet({ partitions: 1 });
    const { encrypt: _, ...journal } = fleet.journal as { encrypt: object };
    const at = async (encrypt: object): Promise<Fleet> => {
      const options = { addresses, oracle, sinks: ['one'], journal: { ...journal, encrypt } };
      const other = new Fleet({ ...options, folder: await temporaryFolder() });
      onTestFinished(() => other.stop());
      return other;
    };
    // From before it was set.
    const plain = await at({});
    const blind = await plain.startInside('b1', 'both');
    for (let n = 0; n < 3; n += 1) await plain.send('u', () => [blind.url]);
    await until('it to be delivered', () => plain.isDelivered);
    await blind.kill('SIGTERM');
    const old = await plain.start('d1', 'deliver');
    expect((await millrace(['keys', 'begin', '--config', fleet.config('x1')])).code).toBe(0);
    const receiver = await fleet.startInside('r1', 'receive');
    await fleet.send('v', () => [receiver.url]);
    await until('it to say so', () => old.stderr.includes('journal.encrypt is missing'));
    expect((await fetch(`${old.adminUrl}/readyz`)).status).toBe(503);
    expect(await (await fetch(`${old.adminUrl}/readyz?verbose`)).json()).toMatchObject({
      checks: expect.arrayContaining([
        expect.objectContaining({
          name: 'journal',
          ok: false,
          troubles: [expect.objectContaining({ code: 'keys_elsewhere' })],
        }),
      ]),
    });
    expect(await (await fetch(`${old.adminUrl}/metrics`)).text()).toMatch(
      /millrace_journal_trouble_since_timestamp_seconds\{code="keys_elsewhere"\} \d/,
    );
    expect((await old.status()).journal.troubles?.[0]?.detail).toContain('from offset 3 on nothing');
    // What is set aside is sealed as well.
    await postSigned(receiver.url, Buffer.from('{"not": JSON'), { id: 'msg_invalid' });
    await until('its count not to be known', async () => (await old.status()).journal.quarantined === null);
    expect((await millrace(['status', '--config', plain.config('d1')])).stdout).toMatch(
      /^quarantine +unknown$/m,
    );
    const counted = await millrace(['keys', 'status', '--json', '--config', fleet.config('x1')]);
    expect(JSON.parse(counted.stdout)).toMatchObject({ active: 2, destroyed: 0, damaged: 0 });
    await old.kill('SIGKILL');

    const other = join(fleet.folder, 'others');
    const elsewhere = await at({ store: other, masterKey: master });
    for (const [wrong, code, ...commands] of [
      [plain, 2, ['erase', 'u', '--now'], ['serve', '--role', 'deliver']],
      [elsewhere, 1, ['erase', 'u', '--now'], ['serve', '--role', 'receive'], ['keys', 'begin']],
    ] as const)
      for (const command of commands) {
        const said = await millrace([...command, '--config', wrong.config('x1')]);
        expect({ command, ...said }).toMatchObject({
          code,
          stderr: expect.stringContaining(keys) as unknown,
        });
      }
    expect(existsSync(join(other, 'header'))).toBe(false);
    // Another fleet's, begun with the same master key.
    const strangers = await makeFleet();
    expect((await millrace(['keys', 'begin', '--config', strangers.fleet.config('x1')])).code).toBe(0);
    const mixed = await at({ store: strangers.keys, masterKey: master });
    for (const command of [
      ['erase', 'u', '--now'],
      ['serve', '--role', 'receive'],
      ['keys', 'begin'],
    ]) {
      const { code, stderr } = await millrace([...command, '--config', mixed.config('x1')]);
      expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(keys) as unknown });
      expect(stderr).toContain(strangers.keys);
    }
    await fleet.startInside('d1', 'deliver');
    await until('it to be delivered', () => fleet.isDelivered);
    expect(fleet.given('one').filter((id) => id === 'msg_v_1')).toHaveLength(1);
    // What was never sealed is found, and named; of whoever has nothing of the kind nothing is left to do.
    const { code, stderr } = await millrace(['erase', 'u', '--now', '--config', fleet.config('x1')]);
    expect({ code, stderr }).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('3 of its records') as unknown,
    });
    expect((await millrace(['erase', 'v', '--now', '--config', fleet.config('x1')])).code).toBe(0);
  });

  test('an older copy of the keys that was restored is refused, and used when it has caught up', async () => {
    const { fleet, keys } = await makeFleet();
    const receiver = await fleet.startInside('r1', 'receive');
    const url = (): string[] => [receiver.url];
    for (const user of ['gone', 'stays']) await fleet.send(user, url);
    cpSync(keys, `${keys}.older`, { recursive: true });
    await eraseWith(fleet, 'x1');
    await fleet.send('stays', url);
    rmSync(keys, { recursive: true });
    renameSync(`${keys}.older`, keys);
    for (const command of [
      ['serve', '--role', 'deliver'],
      ['erase', 'stays', '--now'],
    ]) {
      const { code, stderr } = await millrace([...command, '--config', fleet.config('x2')]);
      expect({ code, stderr }).toMatchObject({ code: 4, stderr: expect.stringContaining('keys catch-up') });
    }
    await until(
      'who runs to refuse',
      async () => (await fetch(`${receiver.adminUrl}/readyz`)).status === 503,
    );
    expect((await postSigned(receiver.url, body('new', 'a.created'), { id: 'msg_new_1' })).status).toBe(503);
    const all = await oracle.read(fleet.topic);
    const caughtUp = await millrace(['keys', 'catch-up', '--json', '--config', fleet.config('x2')]);
    expect(caughtUp).toMatchObject({ code: 0, stdout: expect.stringContaining('"destroyed":1') as unknown });
    expect(opened(all, keysIn(keys, master))).toBe(all.length - 1);
    await until('who runs to go on', async () => (await fetch(`${receiver.adminUrl}/readyz`)).status === 200);
    await fleet.send('stays', url);
    await fleet.startInside('d1', 'deliver');
    await until('the others', () => fleet.given('one').includes('msg_stays_3'));
    expect(fleet.given('one')).toEqual(['msg_stays_1', 'msg_stays_2', 'msg_stays_3']);
  });

  test('an empty folder in place of the keys is no place: 503, no receipt; nothing is lost', async () => {
    const { fleet, keys } = await makeFleet();
    const receiver = await fleet.startInside('r1', 'receive');
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
    const strict = await fleet.startInside('b0', 'both');
    await postSigned(strict.url, body('user-0', 'a.created'), { id: 'msg_released' });
    await strict.kill('SIGTERM');
    fleet.envelope = {};
    const both = [await fleet.startInside('b1', 'both'), await fleet.startInside('b2', 'receive')];
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
