import { expect, test } from 'vitest';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { bodyOf, Fleet } from './fleet.ts';

describeOnSharedKafka('what was retried from quarantine', (kafka) => {
  test('is forwarded once, though it came again to one who did not know it and was retried again', async () => {
    const fleet = await Fleet.make(kafka, { partitions: 1, sinks: ['one'], session: '6s' });
    const deliverer = await fleet.startInside('d1', 'deliver');
    for (const name of ['r1', 'r2']) {
      fleet.envelope = { teams: ['other'] };
      const strict = await fleet.startInside(name, 'receive');
      expect((await postSigned(strict.url, bodyOf('a'), { id: 'msg_1' })).json['status']).toBe('quarantined');
      await strict.kill('SIGTERM');
      fleet.envelope = {};
      expect((await fleet.run('quarantine', 'retry', '--all')).stdout).toContain('retried 1');
      expect(await fleet.listed('quarantine')).toEqual([]);
    }
    const receiver = await fleet.startInside('r3', 'receive');
    await postSigned(receiver.url, bodyOf('a'), { id: 'msg_2' });
    await until('all to be delivered', () => fleet.given('one').includes('msg_2'));
    expect(fleet.given('one')).toEqual(['msg_1', 'msg_2']);
    await receiver.kill('SIGTERM');
    await deliverer.kill('SIGTERM');
  });

  test('so is each of those that have one id and other bytes', async () => {
    const fleet = await Fleet.make(kafka, { partitions: 1, sinks: ['one'], session: '6s' });
    const deliverer = await fleet.startInside('d1', 'deliver');
    /** To one who has had none of it. */
    const send = async (name: string, id: string, ...types: string[]): Promise<void> => {
      const receiver = await fleet.startInside(name, 'receive');
      for (const type of types)
        expect((await postSigned(receiver.url, bodyOf('a', { event_type: type }), { id })).status).toBe(202);
      await receiver.kill('SIGTERM');
    };
    await send('r1', 'msg_1', 'first');
    for (const name of ['r2', 'r3']) {
      await send(name, 'msg_1', 'second', 'third');
      await until('both to be in quarantine', async () => (await fleet.listed('quarantine')).length === 2);
      const keys = (await fleet.listed('quarantine')).map(({ key }) => String(key));
      expect((await fleet.run('quarantine', 'retry', ...keys)).stdout).toContain('retried 2');
    }
    await send('r4', 'msg_2', 'last');
    await until('all to be delivered', () => fleet.given('one').includes('msg_2'));
    expect(fleet.given('one')).toEqual(['msg_1', 'msg_1', 'msg_1', 'msg_2']);
    await deliverer.kill('SIGTERM');
  });
});
