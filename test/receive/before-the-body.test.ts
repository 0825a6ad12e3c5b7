import { createHmac } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createVerifier } from '../../src/verify/registry.ts';
import { deliver, EVENT, head, RawClient, signed, start } from './support.ts';

const NOW = (): string => String(Math.floor(Date.now() / 1000));
const PLAUSIBLE = `v1,${Buffer.alloc(32, 1).toString('base64')}`;

/** Sends headers that announce a body, and nothing else. */
async function announce(port: number, headers: Record<string, string | number>): Promise<RawClient> {
  const client = new RawClient(port);
  client.socket.write(head({ 'content-length': 5000, expect: '100-continue', ...headers }));
  await client.until(/100 Continue|"code"/);
  return client;
}

describe('a delivery whose headers cannot be genuine', () => {
  it('is refused before its body is read or asked for: standard-webhooks', async () => {
    const { port, outcomes } = await start();
    const good = { 'webhook-id': 'a', 'webhook-timestamp': NOW(), 'webhook-signature': PLAUSIBLE };
    const cases: [Record<string, string>, string][] = [
      [{}, 'signature_missing'],
      [{ ...good, 'webhook-signature': '' }, 'signature_missing'],
      [{ ...good, 'webhook-id': 'x'.repeat(257) }, 'signature_invalid'],
      [{ ...good, 'webhook-timestamp': '1000000000' }, 'timestamp_too_old'],
      [{ ...good, 'webhook-timestamp': '99999999999' }, 'timestamp_too_new'],
      [{ ...good, 'webhook-timestamp': 'soon' }, 'timestamp_invalid'],
      [{ ...good, 'webhook-signature': 'v1,AAAA v2,AAAA' }, 'signature_invalid'],
      // There is no key for these.
      [
        { ...good, 'webhook-signature': `v1a,${Buffer.alloc(64, 1).toString('base64')}` },
        'signature_invalid',
      ],
    ];
    for (const [headers, code] of cases) {
      const client = await announce(port, headers);
      expect(client.text).not.toContain('100 Continue');
      expect(client.status).toBe(401);
      expect(client.text).toContain(`"code":"${code}"`);
    }
    expect(outcomes.map(({ info }) => info.bodyBytes)).toEqual(cases.map(() => 0));
    expect((await announce(port, good)).text).toContain('100 Continue');
  });

  it('is refused before its body is read or asked for: hmac', async () => {
    const hmac = { header: 'x-sig', prefix: 'sha256=', timestampHeader: 'x-time' };
    const verifier = createVerifier({ scheme: 'hmac', secrets: ['s'], tolerance: 300_000, hmac });
    const { port, url } = await start({ verifier });
    const good = { 'x-sig': `sha256=${'0'.repeat(64)}`, 'x-time': NOW() };
    const cases: [Record<string, string>, string][] = [
      [{}, 'signature_missing'],
      [{ 'x-sig': good['x-sig'] }, 'signature_missing'],
      [{ ...good, 'x-sig': 'sha256=00' }, 'signature_invalid'],
      [{ ...good, 'x-time': '1000000000' }, 'timestamp_too_old'],
    ];
    for (const [headers, code] of cases) {
      const client = await announce(port, headers);
      expect(client.text).not.toContain('100 Continue');
      expect(client.text).toContain(`"code":"${code}"`);
    }
    expect((await announce(port, good)).text).toContain('100 Continue');
    const digest = createHmac('sha256', 's').update(`${good['x-time']}.`).update(EVENT).digest('hex');
    const headers = { ...good, 'x-sig': `sha256=${digest}` };
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
    const hidden = head({ ...signed(EVENT), 'content-length': EVENT.length }) + EVENT.toString();
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
    client.socket.write(head({ ...signed(EVENT), 'content-length': EVENT.length }) + EVENT.toString());
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
