import { request } from 'node:http';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientAddress } from '../../src/receive/client-address.ts';
import { UnverifiedWork } from '../../src/receive/unverified.ts';
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

describe('work for deliveries that nobody has verified', () => {
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

  it('is given back by what is authentic: forged ones among them, as many, never close an address', async () => {
    const { url } = await start({ limits: { unverifiedBytes: 2 * MIB } });
    const genuine = { sent: gzipSync(EVENT), headers: { 'content-encoding': 'gzip' } };
    for (let n = 0; n < 40; n += 1) {
      const forged = { sent: BOMB, headers: { 'content-encoding': 'br', ...FORGED } };
      expect((await deliver(url, EVENT, forged)).status).toBe(413);
      expect((await deliver(url, EVENT, genuine)).status).toBe(202);
    }
  });

  it('is not charged for deliveries that were refused for reasons of our own', async () => {
    let full = true;
    const { url, outcomes } = await start({
      limits: { unverifiedBytes: 2 * MIB, lingerTimeout: 50 },
      admission: () => (full ? { ok: false, code: 'journal_full', retryAfterMs: 1000 } : { ok: true }),
    });
    const large = Buffer.concat([EVENT, Buffer.alloc(200_000, 0x20)]);
    for (let n = 0; n < 10; n += 1) expect((await deliver(url, large)).status).toBe(503);
    full = false;
    expect((await deliver(url, large)).status).toBe(202);
    expect(outcomes).toHaveLength(11);
  });

  it('is not exceeded by more than one delivery, however they come, and comes back within seconds', () => {
    const deliveries = fc.array(
      fc.record({ address: fc.nat(2), work: fc.nat(MIB), wait: fc.nat(20_000), genuine: fc.boolean() }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(deliveries, (list) => {
        let now = 0;
        const max = 4 * MIB;
        const budget = new UnverifiedWork(max, { monotonic: () => now });
        const wasted = [0, 0, 0];
        const gained = [0, 0, 0];
        for (const { address, work, wait, genuine } of list) {
          now += wait;
          const pause = budget.begin(String(address));
          if (pause > 0) {
            expect(pause).toBeLessThanOrEqual(31_000);
            continue;
          }
          if (genuine) {
            budget.verified(String(address));
            gained[address]! += MIB;
          } else {
            budget.wasted(String(address), work);
            wasted[address]! += work;
          }
        }
        for (const address of [0, 1, 2]) {
          const most = max + (now * max) / 60_000 + gained[address]! + 2 * MIB;
          expect(wasted[address]).toBeLessThanOrEqual(most);
        }
        now += 31_000;
        expect(budget.begin('0')).toBe(0);
      }),
    );
  });

  it('remembers no more than so many addresses', () => {
    const budget = new UnverifiedWork(MIB, { monotonic: () => 0 });
    for (let n = 0; n < 20_000; n += 1) {
      budget.begin(`10.0.${n >> 8}.${n & 255}`);
      budget.wasted(`10.0.${n >> 8}.${n & 255}`, MIB);
    }
    expect(budget.addresses).toBeLessThanOrEqual(10_000);
    expect(budget.begin('10.0.78.31')).toBeGreaterThan(0);
  });
});

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
