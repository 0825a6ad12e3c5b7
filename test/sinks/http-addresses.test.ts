import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { networks, problemWith, type Resolve } from '../../src/sinks/http/addresses.ts';
import { parseOptions } from '../../src/sinks/http/config.ts';
import { openHttp, runningContext, SECRET, startEndpoint } from './http-support.ts';
import { deliver, signal } from './support.ts';

const HOST = 'hooks.made-up.example';

/** Resolves names to these answers, one after another; the last one stays. */
function resolving(...answers: readonly (readonly string[])[]) {
  const resolve = vi.fn<Resolve>((_, __, callback) => {
    const answer = answers[Math.min(resolve.mock.calls.length, answers.length) - 1] ?? [];
    const found = answer.map((address): LookupAddress => ({ address, family: isIP(address) }));
    setImmediate(() => callback(null, found));
  });
  return resolve;
}

describe('addresses', () => {
  const nowhere = { allowed: networks([]), plain: false };

  const PRIVATE = `0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.31.255.255 192.168.1.1
    198.19.0.1 224.0.0.1 255.255.255.255 :: ::1 fe80::1 fec0::1 fd00:ec2::254 ::ffff:127.0.0.1 ::ffff:7f00:1
    ::ffff:a9fe:a9fe ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: ::ffff:0:7f00:1 ::ffff:0:169.254.169.254
    2001:1::1 2001:20::1 3fff::1`;

  test.each(PRIVATE.split(/\s+/))('%s is private', (address) => {
    expect(problemWith(address, nowhere)).toMatch(/private address/);
  });

  test('the others are not, but only https may go there', () => {
    for (const address of '1.1.1.1 172.32.0.1 99.255.255.255 2606:4700:4700::1111 ::ffff:1.1.1.1'.split(
      ' ',
    )) {
      expect(problemWith(address, nowhere), address).toBeNull();
      expect(problemWith(address, { ...nowhere, plain: true }), address).toMatch(/only https/);
    }
  });

  test('what is allowed is allowed, and its neighbours are not', () => {
    const rules = { allowed: networks([['10.1.0.0/16', 'fd00::/8', '127.0.0.1']]), plain: true };
    for (const address of ['10.1.255.255', 'fd12::1', '127.0.0.1', '::ffff:10.1.0.1'])
      expect(problemWith(address, rules), address).toBeNull();
    for (const address of ['10.2.0.0', 'fe80::1', '127.0.0.2', '::1'])
      expect(problemWith(address, rules), address).toMatch(/private/);
  });

  test.each(['10.0.0.0/33', '10.0.0', 'localhost', '10.0.0.0/', '10.0.0.0/8/8', '::/129', '10.0.0.0/-1'])(
    '%s is no network',
    (text) => expect(() => networks([[text]])).toThrow(/no network/),
  );

  test.each(['127.0.0.1', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254'])(
    'a URL with %s is refused when the config is read',
    (host) => {
      const parse = (privateNetworks: string[]): unknown =>
        parseOptions({ url: `https://${host}/`, secrets: [SECRET], privateNetworks });
      expect(() => parse([])).toThrow(/^url: .* is a private address/);
      expect(() => parse(['127.0.0.1', '::1', '169.254.169.254'])).not.toThrow();
    },
  );
});

describe('a name', () => {
  test('is refused when it leads to a private address, also beside a public one', async () => {
    const endpoint = await startEndpoint();
    const url = endpoint.url('/', HOST);
    for (const addresses of [['127.0.0.1'], ['1.1.1.1', '127.0.0.1'], ['127.0.0.1', '1.1.1.1'], ['::1']]) {
      const options = { url, privateNetworks: ['10.0.0.0/8', '1.1.1.1'] };
      const sink = await openHttp(options, runningContext(), resolving(addresses));
      expect(await sink.send(deliver(1, 1), signal)).toMatchObject([
        { status: 'retry', reason: expect.stringMatching(/private address/) as string },
      ]);
    }
    const sink = await openHttp({ url }, runningContext(), resolving([]));
    expect(await sink.send(deliver(1, 1), signal)).toMatchObject([
      { reason: expect.stringMatching(/has no address/) as string },
    ]);
    expect(endpoint.connections).toBe(0);
  });

  test('is resolved once for a connection, which is made to the address that was checked', async () => {
    const endpoint = await startEndpoint();
    // A second lookup gives another address.
    const resolve = resolving(['127.0.0.1'], ['127.0.0.2']);
    const sink = await openHttp({ url: endpoint.url('/', HOST) }, runningContext(), resolve);
    expect(await sink.send(deliver(1, 1), signal)).toEqual([{ status: 'delivered' }]);
    expect(resolve).toHaveBeenCalledOnce();
    expect(endpoint.posts[0]?.headers.host).toBe(`${HOST}:${endpoint.port}`);
  });

  test('is checked again for each connection', async () => {
    const endpoint = await startEndpoint();
    endpoint.reply = () => [204, { connection: 'close' }];
    const resolve = resolving(['127.0.0.1'], ['127.0.0.2']);
    const sink = await openHttp({ url: endpoint.url('/', HOST) }, runningContext(), resolve);
    expect(await sink.send(deliver(1, 1), signal)).toEqual([{ status: 'delivered' }]);
    expect(await sink.send(deliver(2, 1), signal)).toMatchObject([
      { reason: expect.stringMatching(/127\.0\.0\.2 is a private address/) as string },
    ]);
  });
});
