import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnSharedKafka, type Kafka } from '../support/kafka/cluster.ts';
import { millrace } from '../support/millrace.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

/** A fleet with one sink, whose processes share what is erased. */
async function sharing(kafka: Kafka, session: string, sink: (folder: string) => object): Promise<Fleet> {
  const folder = await temporaryFolder();
  const delivery = { retryInitial: '20ms', retryMax: '50ms' };
  const more = { delivery, erasure: { path: join(folder, 'erasure') } };
  return Fleet.make(kafka, {
    folder,
    sinks: ['one'],
    session,
    sink: { only: 'one', ...sink(folder) },
    more,
  });
}

describeOnSharedKafka('a fleet that shares erasure.path', (kafka) => {
  test('has no receipt before what its other processes were sending has been answered', async () => {
    const fleet = await sharing(kafka, '20s', (path) => ({ stalls: join(path, 'stalls') }));
    const { folder } = fleet;
    const stalls = join(folder, 'stalls');
    const deliverer = await fleet.startInside('d1', 'deliver');
    const receiver = await fleet.startInside('r1', 'receive');
    await fleet.send('early', () => [receiver.url]);
    await until('the deliverer to be there', () => fleet.isDelivered);
    writeFileSync(stalls, '');
    await fleet.send('gone', () => [receiver.url]);
    await until('it to be in flight', () => existsSync(`${stalls}.begun`));
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
    const fleet = await sharing(kafka, '6s', (path) => ({ holds: join(path, 'holds') }));
    const { folder } = fleet;
    const holds = join(folder, 'holds');
    const deliverer = await fleet.startInside('d1', 'deliver');
    const first = await fleet.startInside('r1', 'receive');
    // The one that erases: what started last is what the commands ask.
    const receiver = await fleet.startInside('r2', 'receive');
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
