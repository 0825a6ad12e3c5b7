import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import type { Delivery } from '../../src/core/sink.ts';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { openHttp, SECRET, startEndpoint } from './http-support.ts';
import { deliver, signal } from './support.ts';

const OTHER = `whsec_${Buffer.from('another made-up secret!!').toString('base64')}`;

const one = (
  changes: Parameters<typeof contractEvent>[1] = {},
  destination: string | null = null,
): Delivery[] => deliver(1, 1, changes, destination);

describe('what a target gets', () => {
  test('the exact bytes, signed so that any receiver of Standard Webhooks accepts them', async () => {
    const endpoint = await startEndpoint();
    const sink = await openHttp({ url: endpoint.url('/hooks?a=1') });
    expect(await sink.send(one(), signal)).toEqual([{ status: 'delivered' }]);
    const [post] = endpoint.posts;
    expect(post?.path).toBe('/hooks?a=1');
    expect(post?.body.equals(contractEvent(1).body)).toBe(true);
    const headers = post?.headers as Record<string, string>;
    expect(headers).toMatchObject({
      'webhook-id': 'msg_1',
      'idempotency-key': 'msg_1',
      'event-type': 'daily.data.meal.created',
      'content-type': 'application/json',
    });
    // The package looks at the time too, which is now.
    const verify = (secret: string): unknown =>
      new Webhook(secret).verify(post?.body.toString() ?? '', headers);
    expect(verify(SECRET)).toMatchObject({ user_id: 'user-1' });
    expect(() => verify(OTHER)).toThrow(/No matching signature/);
    expect(Object.keys(headers).filter((name) => /user|team/.test(name) && name !== 'user-agent')).toEqual(
      [],
    );
  });

  test('a signature for each secret while one is being replaced, over bytes that are no text too', async () => {
    const endpoint = await startEndpoint();
    const sink = await openHttp({ url: endpoint.url('/'), secrets: [`${SECRET}\n${OTHER}`] });
    const bodies = awkwardBodies();
    for (const body of bodies) await sink.send(one({ body }), signal);
    expect(endpoint.posts.map(({ body }) => body)).toEqual(bodies);
    for (const { headers, body } of endpoint.posts) {
      const expected = [SECRET, OTHER].map((secret) => {
        const hmac = createHmac('sha256', Buffer.from(secret.slice(6), 'base64'));
        hmac.update(`${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.`).update(body);
        return `v1,${hmac.digest('base64')}`;
      });
      expect(headers['webhook-signature']).toBe(expected.join(' '));
    }
  });

  test('the headers the event came with, where they are passed on', async () => {
    const endpoint = await startEndpoint();
    const sink = await openHttp({ url: endpoint.url('/'), sign: 'original', secrets: [] });
    await sink.send(one(), signal);
    expect(endpoint.posts[0]?.headers).toMatchObject(contractEvent(1).headers);
    expect(endpoint.posts[0]?.headers).not.toHaveProperty('webhook-signature');
    // An archive that is replayed may hold anything.
    const headers = {
      'svix-id': 'x',
      host: 'y',
      'content-length': '1',
      'transfer-encoding': 'z',
      te: 'a\nb',
      'a b': 'c',
    };
    expect(await sink.send(one({ headers }), signal)).toEqual([{ status: 'delivered' }]);
    expect(endpoint.posts[1]?.headers).toMatchObject({ 'svix-id': 'x', host: `127.0.0.1:${endpoint.port}` });
  });

  test('headers of the sink and of the target, and its own secrets', async () => {
    const endpoint = await startEndpoint();
    const sink = await openHttp({
      url: endpoint.url('/main'),
      headers: { Authorization: 'Bearer made-up', 'X-Team': 'all' },
      targets: {
        billing: { url: endpoint.url('/billing'), headers: { 'x-team': 'billing' }, secrets: [OTHER] },
      },
    });
    await sink.send(one(), signal);
    await sink.send(one({}, 'billing'), signal);
    const [main, billing] = endpoint.posts.map(({ headers }) => headers as Record<string, string>);
    expect(main).toMatchObject({ authorization: 'Bearer made-up', 'x-team': 'all' });
    expect(billing).toMatchObject({ authorization: 'Bearer made-up', 'x-team': 'billing' });
    const body = contractEvent(1).body.toString();
    expect(() => new Webhook(OTHER).verify(body, billing ?? {})).not.toThrow();
    expect(() => new Webhook(SECRET).verify(body, billing ?? {})).toThrow(/No matching/);
  });

  test('what a replay and a claim check are known by, and any id as a header can carry it', async () => {
    const endpoint = await startEndpoint();
    const sink = await openHttp({ url: endpoint.url('/') });
    const handling = { replayId: 'replay-7', claimCheck: true, trace: { traceparent: '00-1-2-03' } };
    await sink.send(one({ handling }), signal);
    expect(endpoint.posts[0]?.headers).toMatchObject({
      'replay-id': 'replay-7',
      'claim-check': 'true',
      traceparent: '00-1-2-03',
    });
    const ids = ['a\r\nx: y', 'a\n\nx: y', 'ü', `${'x'.repeat(300)}1`, `${'x'.repeat(300)}2`];
    for (const id of ids) expect(await sink.send(one({ id }), signal)).toEqual([{ status: 'delivered' }]);
    const sent = endpoint.ids().slice(1);
    expect(new Set(sent).size).toBe(ids.length);
    for (const id of sent) expect(id).toMatch(/^[\x21-\x7e]{1,256}$/);
  });

  test('events of one user one after another, those of others beside them', async () => {
    const endpoint = await startEndpoint();
    const held = Promise.withResolvers<void>();
    endpoint.reply = async (_, __, headers) => {
      if (headers['idempotency-key'] === 'msg_1') await held.promise;
      return 204;
    };
    const sink = await openHttp({ url: endpoint.url('/') });
    const batch = [...deliver(1, 3, { user: 'a' }), ...deliver(4, 3, { user: 'b' })];
    const sent = sink.send(batch, signal);
    await expect.poll(() => endpoint.ids()).toEqual(['msg_4', 'msg_5', 'msg_6']);
    held.resolve();
    await sent;
    expect(endpoint.ids().slice(3)).toEqual(['msg_1', 'msg_2', 'msg_3']);
  });

  test('nothing of a user follows what has to be sent again', async () => {
    const endpoint = await startEndpoint();
    endpoint.reply = (_, __, headers) => (headers['idempotency-key'] === 'msg_2' ? 500 : 204);
    const sink = await openHttp({ url: endpoint.url('/') });
    const results = await sink.send(
      [...deliver(1, 3, { user: 'a' }), ...deliver(4, 1, { user: 'b' })],
      signal,
    );
    expect(results.map(({ status }) => status)).toEqual(['delivered', 'retry', 'retry', 'delivered']);
    expect(endpoint.ids().toSorted()).toEqual(['msg_1', 'msg_4']);
  });
});
