import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { SCHEDULE } from '../../src/sandbox/sender.ts';
import { Bench } from './support.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../support/manual-clock.ts';
import { startReceiver, type Received } from './receiver.ts';

const SECRET = `whsec_${Buffer.from('made-up secret of this test').toString('base64')}`;

/** Asks the reference implementation whether a delivery was signed with the secret. */
function verifyStandardWebhooks(secret: string, family: 'svix' | 'webhook', received: Received): boolean {
  const headers: Record<string, string> = {};
  for (const name of ['id', 'timestamp', 'signature'])
    headers[`webhook-${name}`] = String(received.headers[`${family}-${name}`]);
  try {
    new Webhook(secret).verify(received.body.toString(), headers);
    return true;
  } catch {
    return false;
  }
}

/** Moves the clock, and lets what became due arrive. */
async function pass(bench: Bench, ms: number): Promise<void> {
  bench.clock.advance(ms);
  await bench.state.sender.idle();
}

/** Sends events, and lets them arrive. */
async function send(bench: Bench, events = 1): Promise<readonly string[]> {
  const ids = bench.sandbox.sendEvents(events);
  await pass(bench, 0);
  return ids;
}

describe('webhooks', () => {
  test.each(['svix', 'webhook'] as const)('are signed, with %s-* headers', async (family) => {
    const receiver = await startReceiver();
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET, family }] });
    await send(bench, 9);
    expect(receiver.received).toHaveLength(9);
    for (const received of receiver.received)
      expect(verifyStandardWebhooks(SECRET, family, received)).toBe(true);
  });

  test('are tried again on the schedule, under the same id, and then exhausted', async () => {
    const receiver = await startReceiver();
    receiver.answer = { status: 302, headers: { location: receiver.url } };
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET }] });
    const [id] = await send(bench);
    const counts = [receiver.received.length];
    for (const delay of SCHEDULE.slice(1)) {
      await pass(bench, delay - SECOND);
      counts.push(receiver.received.length);
      await pass(bench, SECOND);
    }
    expect(counts).toEqual([1, 1, 2, 3, 4, 5, 6, 7]);
    expect(SCHEDULE).toEqual([
      0,
      5 * SECOND,
      5 * MINUTE,
      30 * MINUTE,
      2 * HOUR,
      5 * HOUR,
      10 * HOUR,
      10 * HOUR,
    ]);
    const first = receiver.received.filter(({ headers }) => headers['svix-id'] === id);
    expect(first).toHaveLength(8);
    expect(bench.state.events.counts.get('message.attempt.exhausted')).toBe(1);
  });

  test('Retry-After is honoured on 503', async () => {
    const receiver = await startReceiver();
    receiver.answer = { status: 503, headers: { 'retry-after': '600' } };
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET }] });
    await send(bench);
    await pass(bench, 599 * SECOND);
    expect(receiver.received).toHaveLength(1);
    receiver.answer = { status: 200 };
    await pass(bench, SECOND);
    expect(receiver.received).toHaveLength(2);
    await pass(bench, DAY);
    expect(receiver.received).toHaveLength(2);
  });

  test('an endpoint that fails for five days is disabled, and enabled again by an update', async () => {
    const receiver = await startReceiver();
    receiver.answer = { status: 500 };
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET }] });
    const [endpoint] = bench.state.endpoints.list(bench.sandbox.teamId);
    for (let day = 0; day <= 5; day += 1) {
      expect(endpoint!.disabled).toBe(false);
      await send(bench);
      if (day < 5) for (let hour = 0; hour < 24; hour += 1) await pass(bench, HOUR);
    }
    expect(endpoint!.disabled).toBe(true);
    const before = receiver.received.length;
    await send(bench);
    expect(receiver.received).toHaveLength(before);
    receiver.answer = { status: 200 };
    const update = `PATCH /team/{team}/webhook/${endpoint!.id}`;
    expect((await bench.manage(update, { disabled: false })).json['disabled']).toBe(false);
    await send(bench);
    expect(receiver.received.length).toBeGreaterThan(before);
  });
});

describe('webhook management', () => {
  test('create, read, update, delete; headers; event types by prefix', async () => {
    const receiver = await startReceiver();
    const bench = await Bench.start();
    const all = '/team/{team}/webhook';
    const fields = { url: receiver.url, event_types: ['daily.'], secret: SECRET };
    const { json: made } = await bench.manage(`POST ${all}`, fields);
    const one = `${all}/${String(made['id'])}`;
    expect(made).toMatchObject({ ...fields, disabled: false });
    const headers = { headers: { 'x-made-up': 'yes' } };
    expect((await bench.manage(`PUT ${one}/headers`, headers)).json).toEqual(headers);
    expect((await bench.manage(`GET ${one}/headers`)).json).toEqual(headers);
    await send(bench, 9);
    expect(receiver.received.map(({ event }) => String(event['event_type'])).sort()).toEqual([
      'daily.data.meal.created',
      'daily.data.meal.updated',
      'daily.data.sleep.created',
    ]);
    expect(receiver.received[0]?.headers['x-made-up']).toBe('yes');
    await bench.manage(`PATCH ${one}`, { event_types: [] });
    expect((await bench.manage(`GET ${one}`)).json).toMatchObject({ event_types: [] });
    expect((await bench.manage(`GET ${all}`)).json['data']).toHaveLength(1);
    for (const [request, body] of [
      [`PUT ${one}/headers`, { headers: { 'svix-id': 'no' } }],
      [`POST ${all}`, { url: 'ftp://made.up' }],
      [`POST ${all}`, { url: receiver.url, secret: 'short' }],
    ] as const)
      expect((await bench.manage(request, body)).status).toBe(422);
    expect((await bench.manage(`DELETE ${one}`)).json).toEqual({ success: true });
    expect((await bench.manage(`GET ${one}`)).status).toBe(404);
  });

  test('a new secret: both sign for a day, then the new one only', async () => {
    const receiver = await startReceiver();
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET }] });
    const [endpoint] = bench.state.endpoints.list(bench.sandbox.teamId);
    const path = `/team/{team}/webhook/${endpoint!.id}/secret`;
    const fresh = String((await bench.manage(`POST ${path}`, {})).json['secret']);
    expect((await bench.manage(`GET ${path}`)).json).toEqual({ secret: fresh });
    /** Whether the new secret, and the old one, have signed the newest delivery. */
    const signed = async (): Promise<boolean[]> => {
      await send(bench);
      const newest = receiver.received.at(-1)!;
      return [fresh, SECRET].map((secret) => verifyStandardWebhooks(secret, 'svix', newest));
    };
    expect(await signed()).toEqual([true, true]);
    bench.clock.advance(DAY);
    expect(await signed()).toEqual([true, false]);
  });
});
