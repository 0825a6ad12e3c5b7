import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { certificates } from '../support/certificates.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { openHttp, SECRET, startEndpoint, type Endpoint, type Post } from './http-support.ts';
import { deliver, signal } from './support.ts';

const OTHER = `whsec_${Buffer.from('another made-up secret!!').toString('base64')}`;
const DELIVERED = { status: 'delivered' };

const one = (changes: Parameters<typeof contractEvent>[1] = {}, destination: string | null = null) =>
  deliver(1, 1, changes, destination);

/** An endpoint, and an open sink for it. */
async function scene(options: object = {}, path = '/') {
  const endpoint = await startEndpoint();
  return { endpoint, sink: await openHttp({ url: endpoint.url(path), ...options }) };
}

/** The package looks at the time too, which is now. */
const verified = (secret: string, post: Post | undefined): unknown =>
  new Webhook(secret).verify(post?.body.toString() ?? '', post?.headers as Record<string, string>);

describe('what a target gets', () => {
  test('the exact bytes, signed so that any receiver of Standard Webhooks accepts them', async () => {
    const { endpoint, sink } = await scene({}, '/hooks?a=1');
    expect(await sink.send(one(), signal)).toEqual([DELIVERED]);
    const [post] = endpoint.posts;
    expect(post).toMatchObject({ path: '/hooks?a=1', body: contractEvent(1).body });
    expect(post?.headers).toMatchObject({
      'webhook-id': 'msg_1',
      'idempotency-key': 'msg_1',
      'event-type': 'daily.data.meal.created',
      'content-type': 'application/json',
    });
    expect(verified(SECRET, post)).toMatchObject({ user_id: 'user-1' });
    expect(() => verified(OTHER, post)).toThrow(/No matching signature/);
    const names = Object.keys(post?.headers ?? {});
    expect(names.filter((name) => /user|team/.test(name))).toEqual(['user-agent']);
  });

  test('a signature for each secret while one is being replaced, over bytes that are no text too', async () => {
    const { endpoint, sink } = await scene({ secrets: [`${SECRET}\n${OTHER}`] });
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
    const { endpoint, sink } = await scene({ sign: 'original', secrets: [] });
    await sink.send(one(), signal);
    // An archive that is replayed may hold anything.
    const odd = { 'svix-id': 'x', 'content-length': '1', 'transfer-encoding': 'z', te: 'a\nb', 'a b': 'c' };
    expect(await sink.send(one({ headers: { ...odd, host: 'y' } }), signal)).toEqual([DELIVERED]);
    const [first, second] = endpoint.posts.map(({ headers }) => headers);
    expect(first).toMatchObject(contractEvent(1).headers);
    expect(first).not.toHaveProperty('webhook-signature');
    expect(second).toMatchObject({ 'svix-id': 'x', host: `127.0.0.1:${endpoint.port}` });
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
    const [main, billing] = endpoint.posts;
    expect(main?.headers).toMatchObject({ authorization: 'Bearer made-up', 'x-team': 'all' });
    expect(billing?.headers).toMatchObject({ authorization: 'Bearer made-up', 'x-team': 'billing' });
    expect(() => verified(OTHER, billing)).not.toThrow();
    expect(() => verified(SECRET, billing)).toThrow(/No matching/);
  });

  test('what a replay and a claim check are known by, and any id as a header can carry it', async () => {
    const { endpoint, sink } = await scene();
    const handling = { replayId: 'replay-7', claimCheck: true, trace: { traceparent: '00-1-2-03' } };
    await sink.send(one({ handling }), signal);
    const said = { 'replay-id': 'replay-7', 'claim-check': 'true', traceparent: '00-1-2-03' };
    expect(endpoint.posts[0]?.headers).toMatchObject(said);
    const ids = ['a\r\nx: y', 'a\n\nx: y', 'ü', `${'x'.repeat(300)}1`, `${'x'.repeat(300)}2`];
    for (const id of ids) expect(await sink.send(one({ id }), signal)).toEqual([DELIVERED]);
    const sent = endpoint.ids().slice(1);
    expect(new Set(sent).size).toBe(ids.length);
    for (const id of sent) expect(id).toMatch(/^[\x21-\x7e]{1,256}$/);
  });

  test('events of one user one after another, those of others beside them', async () => {
    const { endpoint, sink } = await scene();
    const held = Promise.withResolvers<void>();
    endpoint.reply = async (_, __, headers) => {
      if (headers['idempotency-key'] === 'msg_1') await held.promise;
      return 204;
    };
    const sent = sink.send([...deliver(1, 3, { user: 'a' }), ...deliver(4, 3, { user: 'b' })], signal);
    await expect.poll(() => endpoint.ids()).toEqual(['msg_4', 'msg_5', 'msg_6']);
    held.resolve();
    await sent;
    expect(endpoint.ids().slice(3)).toEqual(['msg_1', 'msg_2', 'msg_3']);
  });

  test('nothing of a user that follows what has to be sent again', async () => {
    const { endpoint, sink } = await scene();
    endpoint.reply = (_, __, headers) => (headers['idempotency-key'] === 'msg_2' ? 500 : 204);
    const batch = [...deliver(1, 3, { user: 'a' }), ...deliver(4, 1, { user: 'b' })];
    const results = await sink.send(batch, signal);
    expect(results.map(({ status }) => status)).toEqual(['delivered', 'retry', 'retry', 'delivered']);
    expect(endpoint.ids().toSorted()).toEqual(['msg_1', 'msg_4']);
  });
});

const lack = lacksProgram('openssl');

describe.skipIf(lack)(`mutual TLS${skipped(lack)}`, () => {
  type Certificates = ReturnType<typeof certificates>;
  const serve = ({ ca, server, serverKey }: Certificates): Promise<Endpoint> =>
    startEndpoint({ ca, cert: server, key: serverKey, requestCert: true, rejectUnauthorized: true });
  const tlsOf = ({ ca, client, clientKey }: Certificates) => ({ ca, cert: client, key: clientKey });

  test('the target is known by our authority, and we are known by our certificate', async () => {
    const made = certificates();
    const endpoint = await serve(made);
    const { ca, cert, key } = tlsOf(made);
    const send = async (tls: object) => (await openHttp({ url: endpoint.url('/'), tls })).send(one(), signal);
    expect(await send({ ca, cert, key })).toEqual([DELIVERED]);
    expect(await send({ ca })).toMatchObject([{ status: 'retry' }]);
    // Without our authority the target could be anybody.
    expect(await send({ cert, key })).toMatchObject([
      { status: 'retry', reason: expect.stringMatching(/certificate/) as string },
    ]);
    expect(endpoint.posts).toHaveLength(1);
  });

  test('each target has its own', async () => {
    const [ours, theirs] = [certificates(), certificates()];
    const [first, second] = [await serve(ours), await serve(theirs)];
    const targets = {
      second: { url: second.url('/'), tls: tlsOf(theirs) },
      wrong: { url: second.url('/') },
    };
    const sink = await openHttp({ url: first.url('/'), tls: tlsOf(ours), targets });
    const results = [null, 'second', 'wrong'].map((place) => sink.send(one({}, place), signal));
    const statuses = (await Promise.all(results)).flat().map(({ status }) => status);
    expect(statuses).toEqual(['delivered', 'delivered', 'retry']);
  });
});
