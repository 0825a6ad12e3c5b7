import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint, type Endpoint } from '../sinks/http-support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const SECRET = `whsec_${Buffer.from('between us and targets').toString('base64')}`;
const EVENTS = 150;

test('what is acknowledged reaches its target through kill -9, errors and a target that is down', async () => {
  const folder = await temporaryFolder();
  const [services, labs] = [await startEndpoint(), await startEndpoint()];
  const config = writeConfig(folder, {
    delivery: { retryInitial: '50ms', retryMax: '200ms' },
    sinks: {
      services: {
        type: 'http',
        url: services.url('/services'),
        targets: { labs: { url: labs.url('/labs') } },
        secrets: [SECRET],
        privateNetworks: ['127.0.0.1'],
        concurrency: 4,
      },
    },
    routes: [
      { match: 'labtest.', to: ['services:labs'] },
      { match: '*', to: ['services'] },
    ],
  });

  const sent = new Map(
    Array.from({ length: EVENTS }, (_, n) => {
      const type = n % 3 === 0 ? 'labtest.order.updated' : 'daily.data.meal.created';
      const { id, body } = madeUpEvent(n, type);
      return [id, { n, type, body, user: (JSON.parse(body.toString()) as { user_id: string }).user_id }];
    }),
  );
  const [refused, throttled] = [...sent].filter(([, { n }]) => n === 130 || n === 131).map(([id]) => id);
  await labs.stop();
  let receiver: Serving = await ReceiverProcess.start(config);
  for (const [id, { body }] of sent) {
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    if (services.posts.length >= 20) services.reply = () => 'hang';
  }
  await until('requests that hang', () => services.open === 4);
  await receiver.kill('SIGKILL');

  let throttles = 1;
  services.reply = (_, __, headers) => {
    if (headers['idempotency-key'] === refused) return 422;
    if (headers['idempotency-key'] === throttled && throttles-- > 0) return [503, { 'retry-after': '0' }];
    return 204;
  };
  receiver = await Receiver.start(config);
  const lacking = (endpoint: Endpoint, prefix: string): string[] => {
    const ids = new Set(endpoint.ids());
    return [...sent].filter(([id, { type }]) => type.startsWith(prefix) && !ids.has(id)).map(([id]) => id);
  };
  // The target that is down holds nobody else up, and is named.
  await until('all but the refused one', () => lacking(services, 'daily.').length === 1);
  const troubles = async (): Promise<unknown> => (await receiver.status()).sinks[0]?.troubles;
  await until('the trouble', async () => JSON.stringify(await troubles()).includes('target labs: '));

  await labs.start();
  await receiver.drained();
  expect(lacking(labs, 'labtest.')).toEqual([]);
  expect(lacking(services, 'daily.')).toEqual([refused]);
  expect(await troubles()).toEqual([]);
  const { stdout } = await millrace(['dead-letters', 'list', '--config', config, '--json']);
  expect(stdout).toContain(refused);
  expect(stdout).toContain('answered 422');

  for (const { posts } of [services, labs]) {
    const first = new Map<string, number[]>();
    const seen = new Set<string>();
    for (const { headers, body, status } of posts) {
      const id = String(headers['webhook-id']);
      const event = sent.get(id);
      expect(body.equals(event?.body ?? Buffer.alloc(0))).toBe(true);
      new Webhook(SECRET).verify(body.toString(), headers as Record<string, string>);
      if (status >= 300 || seen.has(id)) continue;
      seen.add(id);
      first.set(event?.user ?? '', [...(first.get(event?.user ?? '') ?? []), event?.n ?? -1]);
    }
    for (const [user, numbers] of first)
      expect(numbers, user).toEqual(numbers.toSorted((one, other) => one - other));
  }
});
