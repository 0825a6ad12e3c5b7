import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace } from '../support/millrace.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

const bodyOf = (user: string, type = 'made.up'): Buffer =>
  Buffer.from(JSON.stringify({ event_type: type, team_id: 'team', user_id: user, client_user_id: user }));

describeOnSharedKafka('what was retried from quarantine', ({ addresses, oracle }) => {
  test('is forwarded once, though it came again to one who did not know it and was retried again', async () => {
    const folder = await temporaryFolder();
    const fleet = new Fleet({ folder, addresses, oracle, partitions: 1, sinks: ['one'], session: '6s' });
    onTestFinished(() => fleet.stop());
    await fleet.createTopics();
    const deliverer = await fleet.startInside('d1', 'deliver');
    const run = (...args: string[]): ReturnType<typeof millrace> =>
      millrace([...args, '--config', fleet.config('cli')]);
    for (const name of ['r1', 'r2']) {
      fleet.envelope = { teams: ['other'] };
      const strict = await fleet.startInside(name, 'receive');
      expect((await postSigned(strict.url, bodyOf('a'), { id: 'msg_1' })).json['status']).toBe('quarantined');
      await strict.kill('SIGTERM');
      fleet.envelope = {};
      expect((await run('quarantine', 'retry', '--all')).stdout).toContain('retried 1');
      expect((await run('quarantine', 'list', '--json')).stdout).toBe('');
    }
    const receiver = await fleet.startInside('r3', 'receive');
    await postSigned(receiver.url, bodyOf('a'), { id: 'msg_2' });
    await until('all to be delivered', () => fleet.given('one').includes('msg_2'));
    expect(fleet.given('one')).toEqual(['msg_1', 'msg_2']);
    await receiver.kill('SIGTERM');
    await deliverer.kill('SIGTERM');
  });

  test('so is each of those that have one id and other bytes', async () => {
    const folder = await temporaryFolder();
    const fleet = new Fleet({ folder, addresses, oracle, partitions: 1, sinks: ['one'], session: '6s' });
    onTestFinished(() => fleet.stop());
    await fleet.createTopics();
    const run = (...args: string[]): ReturnType<typeof millrace> =>
      millrace([...args, '--config', fleet.config('cli')]);
    const deliverer = await fleet.startInside('d1', 'deliver');
    /** To one who has had none of it. */
    const send = async (name: string, id: string, ...types: string[]): Promise<void> => {
      const receiver = await fleet.startInside(name, 'receive');
      for (const type of types)
        expect((await postSigned(receiver.url, bodyOf('a', type), { id })).status).toBe(202);
      await receiver.kill('SIGTERM');
    };
    await send('r1', 'msg_1', 'first');
    for (const name of ['r2', 'r3']) {
      await send(name, 'msg_1', 'second', 'third');
      let keys: string[] = [];
      await until('both to be in quarantine', async () => {
        const { stdout } = await run('quarantine', 'list', '--json');
        keys = stdout.match(/(?<="key":)\d+/g) ?? [];
        return keys.length === 2;
      });
      expect((await run('quarantine', 'retry', ...keys)).stdout).toContain('retried 2');
    }
    await send('r4', 'msg_2', 'last');
    await until('all to be delivered', () => fleet.given('one').includes('msg_2'));
    expect(fleet.given('one')).toEqual(['msg_1', 'msg_1', 'msg_1', 'msg_2']);
    await deliverer.kill('SIGTERM');
  });
});
