import { createHmac } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createVerifier } from '../../src/receive/verify/registry.ts';
import { deliver, EVENT, head, RawClient, signed, start, wholeRequest } from './support.ts';

const NOW = (): string => String(Math.floor(Date.now() / 1000));
const PLAUSIBLE = `v1,${Buffer.alloc(32, 1).toString('base64')}`;

/** Sends headers that announce a body, and nothing else. */
async function announce(port: number, headers: Record<string, string | number>): Promise<RawClient> {
  const client = new RawClient(port);
  client.socket.write(head({ 'content-length': 5000, expect: '100-continue', ...headers }));
  await client.until(/100 Continue|"code"/);
  return client;
}

const STANDARD = { 'webhook-id': 'a', 'webhook-timestamp': NOW(), 'webhook-signature': PLAUSIBLE };
const HMAC = { 'x-sig': `sha256=${'0'.repeat(64)}`, 'x-time': NOW() };
const hmac = createVerifier({
  scheme: 'hmac',
  secrets: ['s'],
  tolerance: 300_000,
  hmac: { header: 'x-sig', prefix: 'sha256=', timestampHeader: 'x-time' },
});

describe('a delivery whose headers cannot be genuine', () => {
  it.each<[scheme: string, options: object, good: object, cases: [Record<string, string>, string][]]>([
    [
      'standard-webhooks',
      {},
      STANDARD,
      [
        [{}, 'signature_missing'],
        [{ ...STANDARD, 'webhook-signature': '' }, 'signature_missing'],
        [{ ...STANDARD, 'webhook-id': 'x'.repeat(257) }, 'signature_invalid'],
        [{ ...STANDARD, 'webhook-timestamp': '1000000000' }, 'timestamp_too_old'],
        [{ ...STANDARD, 'webhook-timestamp': '99999999999' }, 'timestamp_too_new'],
        [{ ...STANDARD, 'webhook-timestamp': 'soon' }, 'timestamp_invalid'],
        [{ ...STANDARD, 'webhook-signature': 'v1,AAAA v2,AAAA' }, 'signature_invalid'],
        // There is no key for it.
        [
          { ...STANDARD, 'webhook-signature': `v1a,${Buffer.alloc(64, 1).toString('base64')}` },
          'signature_invalid',
        ],
      ],
    ],
    [
      'hmac',
      { verifier: hmac },
      HMAC,
      [
        [{}, 'signature_missing'],
        [{ 'x-sig': HMAC['x-sig'] }, 'signature_missing'],
        [{ ...HMAC, 'x-sig': 'sha256=00' }, 'signature_invalid'],
        [{ ...HMAC, 'x-time': '1000000000' }, 'timestamp_too_old'],
      ],
    ],
  ])('is refused before its body is read or asked for: %s', async (_, options, good, cases) => {
    const { port, outcomes } = await start(options);
    for (const [headers, code] of cases) {
      const { status, text } = await announce(port, headers);
      expect([status, text]).toEqual([401, expect.stringContaining(`"code":"${code}"`)]);
      expect(text).not.toContain('100 Continue');
    }
    expect(outcomes.map(({ info }) => info.bodyBytes)).toEqual(cases.map(() => 0));
    expect((await announce(port, { ...good })).text).toContain('100 Continue');
  });

  it('is distinguished from one that is signed with hmac', async () => {
    const { url } = await start({ verifier: hmac });
    const digest = createHmac('sha256', 's').update(`${HMAC['x-time']}.`).update(EVENT).digest('hex');
    const headers = { ...HMAC, 'x-sig': `sha256=${digest}` };
    expect((await deliver(url, EVENT, { headers })).status).toBe(202);
  });

  it('costs nothing more for the chunks that came in the same packet: they are not even parsed', async () => {
    const { port, url, nextOutcome } = await start({ limits: { lingerTimeout: 50 } });
    const push = vi.spyOn(IncomingMessage.prototype, 'push');
    onTestFinished(() => push.mockRestore());
    const client = new RawClient(port);
    client.socket.write(head({ 'transfer-encoding': 'chunked' }) + '1\r\n \r\n'.repeat(4090) + '0\r\n\r\n');
    expect(await nextOutcome()).toMatchObject({ code: 'signature_missing' });
    await client.closed;
    expect(client.status).toBe(401);
    expect(client.text).toMatch(/connection: close/i);
    expect(push.mock.calls.filter(([chunk]) => chunk !== null)).toEqual([]);
    expect((await deliver(url)).status).toBe(202);
  });

  it('cannot hide another request in its body', async () => {
    const { port, accepted, outcomes } = await start({ limits: { lingerTimeout: 50 } });
    const hidden = wholeRequest();
    const client = new RawClient(port);
    client.socket.write(head({ 'content-length': 200_000 }) + hidden + 'x'.repeat(200_000 - hidden.length));
    await client.closed;
    expect(client.text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
    expect(accepted).toEqual([]);
    expect(outcomes).toHaveLength(1);
  });

  it('leaves its connection open for the next when its body is small', async () => {
    const { port } = await start();
    const client = new RawClient(port);
    client.socket.write(head({ 'content-length': 5 }) + 'hello');
    await client.until(/"code"/);
    client.socket.write(wholeRequest());
    await client.until(/accepted/);
    expect(client.text).toMatch(/ 401 [^]* 202 /);
  });
});

describe('a request that two servers could read in two ways', () => {
  it('is refused: two Host headers, Transfer-Encoding in HTTP/1.0 or of gzip, HTTP/2.0', async () => {
    const { port, outcomes } = await start({ limits: { lingerTimeout: 50 } });
    const body = `${EVENT.length.toString(16)}\r\n${EVENT.toString()}\r\n0\r\n\r\n`;
    const requests = [
      head({ ...signed(EVENT), HOST: 'y', 'content-length': EVENT.length }) + EVENT.toString(),
      head({ ...signed(EVENT), 'transfer-encoding': 'chunked' }, 'POST /webhooks HTTP/1.0') + body,
      head({ ...signed(EVENT), 'transfer-encoding': 'gzip, chunked' }) + body,
      head({ ...signed(EVENT), 'content-length': EVENT.length }, 'POST /webhooks HTTP/2.0') +
        EVENT.toString(),
      head({ ...signed(EVENT), 'content-length': EVENT.length }, 'POST /webhooks HTTP/0.9') +
        EVENT.toString(),
    ];
    for (const request of requests) {
      const client = new RawClient(port);
      client.socket.write(request);
      await client.closed;
      expect(client.status).toBe(400);
      expect(client.text).toContain('"code":"request_malformed"');
    }
    expect(outcomes).toHaveLength(requests.length);
  });
});
