import { createHash, createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createHmacVerifier } from '../../../src/receive/verify/hmac.ts';
import { verifierContract } from './contract.ts';

const secrets = ['first secret', 'second secret'] as const;
const BODY = Buffer.from('{"a":1}');

verifierContract({
  name: 'hmac, hex SHA-256 of the body behind a prefix',
  secrets,
  create: (list, tolerance) =>
    createHmacVerifier({
      secrets: list,
      tolerance,
      hmac: { header: 'X-Hub-Signature-256', prefix: 'sha256=' },
    }),
  sign: (secret, _id, _at, body) => ({
    'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  }),
  signatureHeader: 'x-hub-signature-256',
});

verifierContract({
  name: 'hmac, base64 SHA-512 of id, timestamp and body',
  secrets,
  create: (list, tolerance) =>
    createHmacVerifier({
      secrets: list,
      tolerance,
      hmac: {
        header: 'x-sig',
        algorithm: 'sha512',
        encoding: 'base64',
        timestampHeader: 'X-Time',
        idHeader: 'X-Id',
        content: 'v0:{id}:{timestamp}:{body}',
      },
    }),
  sign: (secret, id, at, body) => {
    const hmac = createHmac('sha512', secret)
      .update(`v0:${id}:${at / 1000}:`)
      .update(body);
    return { 'x-sig': hmac.digest('base64'), 'x-time': String(at / 1000), 'x-id': id };
  },
  signatureHeader: 'x-sig',
  timestampHeader: 'x-time',
  idHeader: 'x-id',
});

const digest = (text: string): string => createHmac('sha1', 's').update(text).update(BODY).digest('hex');
const create = (hmac: object) => () => createHmacVerifier({ secrets: ['s'], tolerance: 0, hmac });

describe('hmac', () => {
  const hmac = { header: 'x-sig', algorithm: 'sha1' } as const;
  const verifier = createHmacVerifier({ secrets: ['s'], tolerance: 0, hmac });

  it('takes the id from its header, where that is signed', () => {
    const signsId = createHmacVerifier({
      secrets: ['s'],
      tolerance: 0,
      hmac: { ...hmac, idHeader: 'x-id', content: '{id}.{body}' },
    });
    const headers = { 'x-sig': digest('abc.'), 'x-id': 'abc' };
    expect(signsId.verify(headers, BODY, 0)).toMatchObject({ ok: true, id: 'abc' });
    expect(signsId.verify({ ...headers, 'x-id': 'guessed' }, BODY, 0).ok).toBe(false);
    expect(signsId.verify({ 'x-sig': digest('a\nb.'), 'x-id': 'a\nb' }, BODY, 0).ok).toBe(false);
  });

  it('makes the id of all that is signed, where no id is', () => {
    const hashOf = (text: string): string => createHash('sha256').update(text).update(BODY).digest('hex');
    expect(verifier.verify({ 'x-sig': digest(''), 'x-id': 'guessed' }, BODY, 0)).toMatchObject({
      ok: true,
      id: hashOf(''),
    });
    const timed = createHmacVerifier({
      secrets: ['s'],
      tolerance: 1000,
      hmac: { ...hmac, timestampHeader: 'x-time' },
    });
    // Equal bodies at another time are another event.
    for (const time of ['7', '8'])
      expect(timed.verify({ 'x-sig': digest(`${time}.`), 'x-time': time }, BODY, 7500)).toMatchObject({
        ok: true,
        id: hashOf(`${time}.`),
      });
    expect(timed.verify({ 'x-sig': digest('7.'), 'x-time': '8' }, BODY, 7500).ok).toBe(false);
    const plain = createHmacVerifier({ secrets: ['s'], tolerance: 0, hmac: { algorithm: 'sha1' } });
    expect(plain.verify({ 'x-signature': digest('') }, BODY, 0).ok).toBe(true);
  });

  it('takes hex in any case', () => {
    expect(verifier.verify({ 'x-sig': digest('').toUpperCase() }, BODY, 0).ok).toBe(true);
  });

  it('refuses a content that leaves out what it should protect', () => {
    expect(create({ content: '{timestamp}' })).toThrow(/no \{body\}/);
    expect(create({ content: '{body}', timestampHeader: 'x' })).toThrow(/no \{timestamp\}/);
    expect(create({ content: '{timestamp}{body}' })).toThrow(/timestampHeader/);
    expect(create({ content: '{id}{body}' })).toThrow(/idHeader/);
    expect(create({ idHeader: 'x-id' })).toThrow(/idHeader is not protected/);
    expect(create({ idHeader: 'x-id', content: 'id.{body}' })).toThrow(/idHeader is not protected/);
  });
});
