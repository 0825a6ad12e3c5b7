import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

/** Starts a process of it, with one sink. */
const startOf = (fleet: Fleet, folder: string, sink: object) => (name: string, role: string) => {
  const own = join(folder, name);
  mkdirSync(own);
  const type = join(import.meta.dirname, 'history-sink.js');
  const config = writeConfig(own, {
    journal: fleet.journal,
    sinks: { one: { type, path: join(folder, 'sink-one.jsonl'), only: 'one', ...sink } },
    routes: [{ match: '*', to: ['one'] }],
    delivery: { retryInitial: '20ms', retryMax: '50ms' },
    erasure: { path: join(folder, 'erasure') },
    envelope: { userIds: 'text' },
  });
  return Receiver.start(config, { args: ['--role', role] });
};

describeOnSharedKafka('a fleet that shares erasure.path', (kafka) => {
  test('has no receipt before what its other processes were sending has been answered', async () => {
    const folder = await temporaryFolder();
    const fleet = await Fleet.make(kafka, { folder, sinks: ['one'], session: '20s' });
    const stalls = join(folder, 'stalls');
    const start = startOf(fleet, folder, { stalls });
    const deliverer = await start('d1', 'deliver');
    const receiver = await start('r1', 'receive');
    await fleet.send('early', () => [receiver.url]);
    await until('the deliverer to be there', () => fleet.isDelivered);
    writeFileSync(stalls, '');
    await fleet.send('gone', () => [receiver.url]);
    await until('it to be under way', () => existsSync(`${stalls}.begun`));
    const erasing = millrace(['erase', 'gone', '--now', '--config', join(folder, 'r1/millrace.yaml')]);
    // Longer than it takes those who have nothing to say that.
    const first = await Promise.race([erasing.then(() => 'ended'), wait(4000).then(() => 'waits')]);
    expect(first).toBe('waits');
    rmSync(stalls);
    const { stdout, stderr } = await erasing;
    expect(stdout + stderr).toContain('the brokers keep what it had until');
    const receipts = join(folder, 'erasure/receipts');
    const [name = ''] = readdirSync(receipts);
    const { finished_at: ended } = JSON.parse(readFileSync(join(receipts, name), 'utf8')) as {
      finished_at: string;
    };
    const line = readFileSync(join(folder, 'sink-one.jsonl'), 'utf8').split('\n')[1] ?? '';
    const [id, , , at] = JSON.parse(line) as [string, string, number, number];
    expect(id).toBe('msg_gone_1');
    expect(Date.parse(ended)).toBeGreaterThan(at);
    for (const each of [receiver, deliverer]) await each.kill('SIGTERM');
    expect(readdirSync(join(folder, 'erasure/followers'))).toEqual([]);
  });

  test('sends nothing more of who was erased by another of its processes, and keeps nothing that comes', async () => {
    const folder = await temporaryFolder();
    const fleet = await Fleet.make(kafka, { folder, sinks: ['one'], session: '6s' });
    const holds = join(folder, 'holds');
    const start = startOf(fleet, folder, { holds });
    const deliverer = await start('d1', 'deliver');
    const first = await start('r1', 'receive');
    // The one that erases: what started last is what the commands ask.
    const receiver = await start('r2', 'receive');
    await fleet.send('early', () => [first.url]);
    await until('the deliverer to be there', () => fleet.isDelivered);
    writeFileSync(holds, '');
    for (let n = 0; n < 3; n += 1) await fleet.send('gone', () => [first.url]);
    const config = join(folder, 'r2/millrace.yaml');
    const erased = await millrace(['erase', 'gone', '--now', '--config', config]);
    expect(erased.stdout + erased.stderr).toContain('the brokers keep what it had until');
    await fleet.send('gone', () => [first.url]);
    rmSync(holds);
    await fleet.send('stays', () => [first.url]);
    await until('what stays', () => fleet.given('one').includes('msg_stays_1'));
    // Each is past all, so that nothing of it is to come.
    await until('all to be passed', async () => (await fleet.past('one')) >= 5);
    expect(fleet.given('one')).toEqual(['msg_early_1', 'msg_stays_1']);
    for (const each of [first, receiver, deliverer]) await each.kill('SIGTERM');
  });
});
