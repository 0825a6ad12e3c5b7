import { request } from 'node:http';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientAddress } from '../../src/receive/senders.ts';
import { UnverifiedWork } from '../../src/receive/unverified.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { deliver, EVENT, signed, start } from './support.ts';

const MIB = 1024 * 1024;
const BOMB = brotliCompressSync(Buffer.alloc(16 * MIB));
const FORGED = { 'svix-signature': `v1,${Buffer.alloc(32, 1).toString('base64')}` };

/** From an address of this machine's many. */
function post(
  port: number,
  localAddress: string,
  body: Buffer,
  headers: Record<string, string>,
): Promise<{ status: number; retryAfter: number }> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', localAddress, path: '/webhooks', method: 'POST', headers };
    const sent = request({ ...options, agent: false }, (response) => {
      response.resume().once('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: Number(response.headers['retry-after'] ?? 0),
        });
      });
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

describe('work for deliveries that are not verified', () => {
  it('ends for an address that has had its share, and not for its plain deliveries, nor for other addresses', async () => {
    const { port, url, outcomes } = await start({ limits: { unverifiedBytes: 6 * MIB } });
    const bomb = { ...signed(EVENT), ...FORGED, 'content-encoding': 'br' };
    const statuses: number[] = [];
    for (let n = 0; n < 20; n += 1) statuses.push((await post(port, '127.0.0.2', BOMB, bomb)).status);
    const refused = statuses.indexOf(429);
    expect(new Set(statuses.slice(0, refused))).toEqual(new Set([413]));
    expect(new Set(statuses.slice(refused))).toEqual(new Set([429]));
    expect(refused).toBeGreaterThan(2);
    expect(refused).toBeLessThan(12);
    expect((await post(port, '127.0.0.2', BOMB, bomb)).retryAfter).toBeGreaterThan(0);
    expect(outcomes.at(-1)).toMatchObject({
      outcome: { code: 'address_over_budget' },
      info: { bodyBytes: 0 },
    });
    // What costs no more than its refusal gets through, forged or not.
    expect((await post(port, '127.0.0.2', EVENT, signed(EVENT))).status).toBe(202);
    expect((await post(port, '127.0.0.2', EVENT, { ...signed(EVENT), ...FORGED })).status).toBe(401);
    const compressed = { sent: gzipSync(EVENT), headers: { 'content-encoding': 'gzip' } };
    expect((await deliver(url, EVENT, compressed)).status).toBe(202);
  });

  it('fault 57: delays what is authentic and comes from the address of a forger, and never refuses it', async () => {
    const { url, port } = await start({ limits: { unverifiedBytes: 2 * MIB } });
    const genuine = { sent: gzipSync(EVENT), headers: { 'content-encoding': 'gzip' } };
    const large = Buffer.concat([EVENT, Buffer.alloc(200_000, 0x20)]);
    expect((await deliver(url)).status).toBe(202);
    const forged = { ...signed(EVENT), ...FORGED, 'content-encoding': 'br' };
    for (let n = 0; n < 6; n += 1) {
      for (let times = 0; times < 4; times += 1)
        expect((await post(port, '127.0.0.1', BOMB, forged)).status).toBe(413);
      expect((await deliver(url, EVENT, genuine)).status).toBe(202);
      expect((await deliver(url, large)).status).toBe(202);
    }
  });

  it('fault 57: is bounded for all strangers together, whose use of it is nothing to known addresses', async () => {
    const { port } = await start({ limits: { unverifiedBytes: 2 * MIB } });
    const forged = { ...signed(EVENT), ...FORGED, 'content-encoding': 'br' };
    const zipped = (): Promise<{ status: number }> =>
      post(port, '127.0.0.3', gzipSync(EVENT), { ...signed(EVENT), 'content-encoding': 'gzip' });
    expect((await post(port, '127.0.0.3', EVENT, signed(EVENT))).status).toBe(202);
    const statuses: number[] = [];
    for (let n = 0; n < 40; n += 1) {
      statuses.push((await post(port, `127.4.0.${n + 1}`, BOMB, forged)).status);
      expect((await zipped()).status).toBe(202);
    }
    // Two budgets at first, and half a one a second.
    expect(statuses.slice(0, 4)).toEqual([413, 413, 413, 413]);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(15);
    expect(new Set(statuses)).toEqual(new Set([413, 429]));
    // What costs no more than its refusal makes a stranger known.
    expect((await post(port, '127.0.0.4', EVENT, signed(EVENT))).status).toBe(202);
  });

  it('fault 57: says once that authentic deliveries come through a proxy whose word is not trusted', async () => {
    let times = 0;
    const overrides = { onForwarded: () => (times += 1) };
    const headers = { 'x-forwarded-for': '192.0.2.1' };
    const { port } = await start(overrides);
    expect((await post(port, '127.0.0.1', EVENT, { ...signed(EVENT), ...FORGED, ...headers })).status).toBe(
      401,
    );
    expect((await post(port, '127.0.0.1', EVENT, signed(EVENT))).status).toBe(202);
    expect(times).toBe(0);
    for (let n = 0; n < 3; n += 1)
      expect((await post(port, '127.0.0.1', EVENT, { ...signed(EVENT), ...headers })).status).toBe(202);
    expect(times).toBe(1);
    const trusting = await start({ ...overrides, limits: { trustedProxies: 1 } });
    expect((await post(trusting.port, '127.0.0.1', EVENT, { ...signed(EVENT), ...headers })).status).toBe(
      202,
    );
    expect(times).toBe(1);
  });

  it('is not charged for deliveries that were refused for reasons of our own', async () => {
    let full = true;
    const { url, outcomes } = await start({
      limits: { unverifiedBytes: 2 * MIB, lingerTimeout: 50 },
      isBacklogFull: () => full,
    });
    const large = Buffer.concat([EVENT, Buffer.alloc(200_000, 0x20)]);
    for (let n = 0; n < 10; n += 1) expect((await deliver(url, large)).status).toBe(503);
    full = false;
    expect((await deliver(url, large)).status).toBe(202);
    expect(outcomes).toHaveLength(11);
  });

  it('is not exceeded by more than one delivery, however they come, and comes back within seconds', () => {
    const deliveries = fc.array(
      fc.record({ address: fc.nat(2), work: fc.nat(MIB), wait: fc.nat(20_000), isKnown: fc.boolean() }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(deliveries, (list) => {
        let now = 0;
        const max = 4 * MIB;
        const budget = new UnverifiedWork(max, { monotonic: () => now, after: neverAfter });
        const wasted = [0, 0, 0];
        for (const { address, work, wait, isKnown } of list) {
          now += wait;
          const sender = budget.senderOf(String(address), isKnown);
          const pause = budget.waitOf(sender);
          if (pause > 0) expect(pause).toBeLessThanOrEqual(31_000);
          else {
            budget.wasted(sender, work);
            if (!isKnown) wasted[address]! += work;
          }
        }
        for (const work of wasted) expect(work).toBeLessThanOrEqual(max + (now * max) / 60_000 + 2 * MIB);
        now += 31_000;
        expect(budget.waitOf(budget.senderOf('0', false))).toBe(0);
      }),
    );
  });

  it('remembers no more than so many addresses, and forgets no known one for strangers', () => {
    let now = 0;
    const budget = new UnverifiedWork(MIB, { monotonic: () => now, after: neverAfter });
    budget.remember('192.0.2.1');
    for (let n = 0; n < 20_000; n += 1) {
      budget.wasted(budget.senderOf(`10.0.${n >> 8}.${n & 255}`, false), MIB);
      now += 10_000;
    }
    expect(budget.addresses).toBeLessThanOrEqual(10_000);
    expect(budget.waitOf(budget.senderOf('192.0.2.1', false))).toBe(0);
    expect(budget.senderOf('192.0.2.1', false).trust).toBeGreaterThan(0);
    for (let n = 0; n < 20_000; n += 1) budget.remember(`10.0.${n >> 8}.${n & 255}`);
    expect(budget.senderOf('192.0.2.1', false).trust).toBe(0);
  });

  it('waits its turn in the order of trust, and is refused only when very many wait', async () => {
    const clock = new ManualClock();
    const budget = new UnverifiedWork(MIB, clock);
    budget.remember('192.0.2.1');
    const [address, connection] = [false, true].map((isKnown) => budget.senderOf('192.0.2.1', isKnown));
    for (let n = 0; n < 4; n += 1) budget.wasted(address!, MIB);
    const order: string[] = [];
    const done = Array.from({ length: 70 }, async (_, n) => {
      const [sender, name] = n % 10 === 9 ? [connection!, 'connection'] : [address!, 'address'];
      if (budget.waitOf(sender) > 0) return;
      await new Promise<void>((resolve) => budget.ask(sender, () => resolve(void order.push(name))));
    });
    expect(budget.waiting).toBe(65);
    expect(budget.waitOf(address!)).toBeGreaterThan(0);
    expect(budget.waitOf(connection!)).toBe(0);
    clock.advance(1000);
    await Promise.all(done);
    // Those that had begun to wait came first.
    expect(order.slice(4, 11)).toEqual(Array(7).fill('connection'));
    expect(budget.waitOf(address!)).toBe(0);
  });
});

const neverAfter = () => () => undefined;

const of = (remoteAddress: string, forwarded?: string, proxies = 0): string =>
  clientAddress(
    { socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } } as unknown as Parameters<
      typeof clientAddress
    >[0],
    proxies,
  );

describe('the address of a client', () => {
  it('is the peer, or the /64 of an IPv6 one', () => {
    expect(of('192.0.2.1', '203.0.113.9')).toBe('192.0.2.1');
    expect(of('::ffff:192.0.2.1')).toBe('192.0.2.1');
    expect(of('2001:db8:0:1::5')).toBe('2001:db8:0:1::/64');
    expect(of('2001:db8:0:1:ffff::')).toBe('2001:db8:0:1::/64');
    expect(of('::1')).toBe('0:0:0:0::/64');
    expect(of('2001:db8::1:2:3:4:5')).toBe('2001:db8:0:1::/64');
  });

  it('is what the outermost of so many proxies has seen, whatever the client has written there before', () => {
    expect(of('192.0.2.1', '198.51.100.1, 203.0.113.9', 1)).toBe('203.0.113.9');
    expect(of('192.0.2.1', '198.51.100.1, 203.0.113.9, 10.0.0.1', 2)).toBe('203.0.113.9');
    expect(of('192.0.2.1', '203.0.113.9:4711', 1)).toBe('203.0.113.9');
    expect(of('192.0.2.1', '[2001:db8::9]:4711', 1)).toBe('2001:db8:0:0::/64');
    expect(of('192.0.2.1', 'unknown', 1)).toBe('192.0.2.1');
    expect(of('192.0.2.1', undefined, 1)).toBe('192.0.2.1');
    expect(of('192.0.2.1', '203.0.113.9', 2)).toBe('192.0.2.1');
  });
});
