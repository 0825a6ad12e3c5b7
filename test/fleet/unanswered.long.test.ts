import { expect, test } from 'vitest';
import { request } from 'undici';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace } from '../support/millrace.ts';
import { Fleet } from './fleet.ts';

describeOnSharedKafka('brokers that do not say how far the fleet is', (kafka) => {
  test('leave the status unknown: 503, and a code that says so', async () => {
    const fleet = await Fleet.make(kafka, { partitions: 1 });
    const receiver = await fleet.startInside('r1', 'receive');
    await kafka.oracle.delete(fleet.topic);
    const { adminUrl, authorization: headers } = receiver;
    const detail = expect.stringContaining(`topic ${fleet.topic}: `) as string;
    for (const path of ['api/status', 'metrics']) {
      const { statusCode, body } = await request(`${adminUrl}/${path}`, { headers });
      expect([statusCode, await body.json()], path).toMatchObject([503, { code: 'journal_unknown', detail }]);
    }
    const { code, stderr } = await millrace(['status', '--json', '--config', fleet.config('r1')]);
    expect([code, JSON.parse(stderr)]).toMatchObject([
      1,
      { error: { code: 'journal_unknown', retryable: true } },
    ]);
    await receiver.kill('SIGTERM');
  });
});
