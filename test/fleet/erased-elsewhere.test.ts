import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

describeOnSharedKafka('a fleet that shares erasure.path', ({ addresses, oracle }) => {
  test('sends nothing more of who was erased by another of its processes, and keeps nothing that comes', async () => {
    const folder = await temporaryFolder();
    const fleet = new Fleet({ folder, addresses, oracle, sinks: ['one'], session: '6s' });
    onTestFinished(() => fleet.stop());
    await fleet.createTopics();
    const holds = join(folder, 'holds');
    const start = (name: string, role: string): Promise<Receiver> => {
      const own = join(folder, name);
      mkdirSync(own);
      const type = join(import.meta.dirname, 'history-sink.js');
      const config = writeConfig(own, {
        journal: fleet.journal,
        sinks: { one: { type, path: join(folder, 'sink-one.jsonl'), holds, only: 'one' } },
        routes: [{ match: '*', to: ['one'] }],
        delivery: { retryInitial: '20ms', retryMax: '50ms' },
        erasure: { path: join(folder, 'erasure') },
        envelope: { userIds: 'text' },
      });
      return Receiver.start(config, { args: ['--role', role] });
    };
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
    await until('all to be passed', async () => {
      const places = await oracle.committed(`${fleet.name}.one`, fleet.topic);
      return [...places.values()].reduce((sum, each) => sum + each, 0) >= 5;
    });
    expect(fleet.given('one')).toEqual(['msg_early_1', 'msg_stays_1']);
    for (const each of [first, receiver, deliverer]) await each.kill('SIGTERM');
  });
});
