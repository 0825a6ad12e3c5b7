import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import * as fc from 'fast-check';
import { Webhook as Reference } from 'standardwebhooks';
import { Webhook as Svix } from 'svix';
import { describe, expect, it } from 'vitest';
import { parseStandardSecret } from '../../../src/receive/verify/standard-secret.ts';
import { createStandardWebhooks } from '../../../src/receive/verify/standard-webhooks.ts';
import { signStandardWebhooks } from '../../../src/receive/verify/sign-standard-webhooks.ts';
import { verifierContract } from './contract.ts';

const shared = (): string => `whsec_${randomBytes(24).toString('base64')}`;

/** `whsk_` with the seed and the public key behind it, and its `whpk_`. */
function keyPair(): { secret: string; seed: string; public: string } {
  const { privateKey } = generateKeyPairSync('ed25519');
  const jwk = privateKey.export({ format: 'jwk' });
  const seed = Buffer.from(jwk.d!, 'base64url');
  const point = Buffer.from(jwk.x!, 'base64url');
  return {
    secret: `whsk_${Buffer.concat([seed, point]).toString('base64')}`,
    seed: `whsk_${seed.toString('base64')}`,
    public: `whpk_${point.toString('base64')}`,
  };
}

const forge = (): string => `v1a,${randomBytes(64).toString('base64')}`;

const create = (secrets: readonly string[], tolerance = 300_000) =>
  createStandardWebhooks({ secrets, tolerance });

/** The headers of a request that has these, in this order. */
async function asNodeReads(pairs: readonly (readonly [string, string])[]): Promise<IncomingHttpHeaders> {
  const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const lines = pairs.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const read = once(server, 'request') as Promise<[IncomingMessage]>;
  const socket = connect(port, '127.0.0.1');
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${lines}\r\n`);
  const [{ headers }] = await read;
  socket.destroy();
  server.closeAllConnections();
  server.close();
  return headers;
}

const NOW = 1_795_000_000_000;
const BODY = Buffer.from('{"a":1}');

for (const family of ['webhook', 'svix'] as const) {
  for (const [version, secrets] of [
    ['v1', [shared(), shared()]],
    ['v1a', [keyPair().secret, keyPair().seed]],
  ] as const) {
    verifierContract({
      name: `standard-webhooks ${version}, ${family}-* headers`,
      secrets,
      create,
      sign: (secret, id, at, body) => signStandardWebhooks(secret, id, at, body, family),
      signatureHeader: `${family}-signature`,
      timestampHeader: `${family}-timestamp`,
      idHeader: `${family}-id`,
    });
  }
}

describe('standard-webhooks', () => {
  it('agrees with the official packages as signers', () => {
    const secret = shared();
    const verifier = create([secret]);
    fc.assert(
      fc.property(fc.json(), fc.stringMatching(/^[\x21-\x7e]{1,60}$/), (body, id) => {
        for (const official of [new Svix(secret), new Reference(secret)]) {
          const signature = official.sign(id, new Date(NOW), body);
          const headers = {
            'svix-id': id,
            'svix-timestamp': String(NOW / 1000),
            'svix-signature': signature,
          };
          expect(verifier.verify(headers, Buffer.from(body), NOW)).toMatchObject({ ok: true, id });
        }
      }),
    );
  });

  it('signs bytes, not text: U+FFFD and an invalid byte are different bodies', () => {
    const secret = shared();
    const text = Buffer.from('{"a":"\ufffd"}');
    const broken = Buffer.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('"}')]);
    const verifies = (signed: Buffer): boolean =>
      create([secret]).verify(signStandardWebhooks(secret, 'x', NOW, signed), broken, NOW).ok;
    expect([verifies(text), verifies(broken)]).toEqual([false, true]);
  });

  it('fault 18: finds the right one among several signatures and secrets of both kinds', () => {
    const pair = keyPair();
    const secrets = [shared(), pair.public, shared()];
    const headers = [
      signStandardWebhooks(pair.secret, 'x', NOW, BODY),
      signStandardWebhooks(shared(), 'x', NOW, BODY),
    ];
    const signature = `v2,zzz ${headers[1]!['webhook-signature']} ${headers[0]!['webhook-signature']}`;
    const all = { ...headers[0], 'webhook-signature': signature };
    expect(create(secrets).verify(all, BODY, NOW)).toMatchObject({ ok: true, secret: 1 });
  });

  it('tries only so many forged v1a signatures, fewer on a large body, and always three for a key', () => {
    const [pair, other] = [keyPair(), keyPair()];
    const found = (keys: readonly string[], before: number, body: Buffer): boolean => {
      const headers = signStandardWebhooks(pair.secret, 'msg_1', NOW, body);
      const forged = Array.from({ length: before }, forge);
      headers['webhook-signature'] = [...forged, headers['webhook-signature']].join(' ');
      return create(keys).verify(headers, body, NOW).ok;
    };
    const large = Buffer.alloc(1024 * 1024);
    for (const body of [BODY, large]) {
      expect(found([pair.public], 2, body)).toBe(true);
      expect(found([pair.public], 8, body)).toBe(false);
      expect(found([other.public, pair.public], 2, body)).toBe(true);
    }
    expect(found([pair.public], 3, BODY)).toBe(true);
    expect(found([pair.public], 3, large)).toBe(false);
  });

  it('reads two signature headers, as node joins them, as the reference libraries do', async () => {
    const secret = shared();
    const now = Date.now();
    const {
      'webhook-id': id,
      'webhook-timestamp': at,
      'webhook-signature': right,
    } = signStandardWebhooks(secret, 'x', now, BODY);
    const wrong = `v1,${randomBytes(32).toString('base64')}`;
    const cases = [[right, wrong], [wrong, right], [`${wrong} ${right}`, wrong], [wrong, wrong], [right]];
    for (const signatures of cases) {
      const headers = await asNodeReads([
        ['webhook-id', id!],
        ['webhook-timestamp', at!],
        ...signatures.map((signature) => ['webhook-signature', signature!] as const),
      ]);
      const accepts = (library: {
        verify(body: string, headers: Record<string, string>): unknown;
      }): boolean => {
        try {
          library.verify(BODY.toString(), headers as Record<string, string>);
          return true;
        } catch {
          return false;
        }
      };
      const expected = signatures.join(' ').includes(right!);
      expect([new Reference(secret), new Svix(secret)].map(accepts)).toEqual([expected, expected]);
      const ours = create([secret]);
      expect(ours.verify(headers, BODY, now).ok).toBe(expected);
      expect(ours.precheck?.(headers, now)).toMatchObject({ ok: true });
    }
  });

  it('does not take one version for the other', () => {
    const secret = shared();
    const headers = signStandardWebhooks(secret, 'x', NOW, BODY);
    headers['webhook-signature'] = headers['webhook-signature']!.replace('v1,', 'v1a,');
    expect(create([secret]).verify(headers, BODY, NOW).ok).toBe(false);
  });

  it('never mixes the two header families', () => {
    const secret = shared();
    const { 'webhook-id': id, ...rest } = signStandardWebhooks(secret, 'x', NOW, BODY);
    expect(create([secret]).verify({ ...rest, 'svix-id': id }, BODY, NOW)).toMatchObject({
      code: 'signature_missing',
    });
  });

  it('takes secrets with and without whsec_, and a public key where a private one signs', () => {
    const bare = randomBytes(32).toString('base64');
    const pair = keyPair();
    for (const [known, signer] of [
      [bare, `whsec_${bare}`],
      [pair.public, pair.seed],
    ] as const)
      expect(create([known]).verify(signStandardWebhooks(signer, 'x', NOW, BODY), BODY, NOW).ok).toBe(true);
    expect(() => signStandardWebhooks(pair.public, 'x', NOW, BODY)).toThrow(/whpk_/);
  });

  it('fault 29: a malformed secret is named by its place and never printed', () => {
    const bad = 'changeme|whsec_|whsec_not base64 at all!|whsec_c2hvcnQ=|whpk_AAAA|whsk_AAAA|schluß'.split(
      '|',
    );
    const swapped = Buffer.concat([
      Buffer.from(keyPair().seed.slice(5), 'base64'),
      Buffer.from(keyPair().public.slice(5), 'base64'),
    ]);
    for (const secret of [...bad, `whsk_${swapped.toString('base64')}`]) {
      const making = () => create([shared(), shared(), secret]);
      const detail = expect.stringContaining('signing.secrets[2]') as string;
      expect(making).toThrow(expect.objectContaining({ code: 'config_invalid', detail }));
      expect(making).not.toThrow(secret.replace(/^wh\w+_(?=.)/, ''));
    }
    expect(JSON.stringify(parseStandardSecret(shared(), 'x'))).not.toContain('whsec');
  });
});
