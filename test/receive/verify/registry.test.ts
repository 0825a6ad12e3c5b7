import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createVerifier, SCHEMES } from '../../../src/receive/verify/registry.ts';

const BODY = Buffer.from('{}');

const unsigned = (idHeader?: string) =>
  createVerifier({
    scheme: 'none',
    secrets: [],
    tolerance: 1,
    insecure: true,
    ...(idHeader && { idHeader }),
  });

describe('registry of schemes', () => {
  it('makes a verifier of each scheme', () => {
    for (const scheme of SCHEMES) {
      const secrets = ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'];
      expect(createVerifier({ scheme, secrets, tolerance: 1, insecure: true }).scheme).toBe(scheme);
    }
  });

  it('refuses a scheme that signs without a secret', () => {
    for (const scheme of ['standard-webhooks', 'hmac'] as const) {
      expect(() => createVerifier({ scheme, secrets: [], tolerance: 1 })).toThrow(
        expect.objectContaining({ code: 'secret_missing' }),
      );
    }
  });

  it('refuses none unless it is called insecure', () => {
    expect(() => createVerifier({ scheme: 'none', secrets: [], tolerance: 1 })).toThrow(/insecure/);
  });

  it('none takes the id from the header that is named, or else from the body', () => {
    const hash = createHash('sha256').update(BODY).digest('hex');
    expect(unsigned('X-Id').verify({ 'x-id': 'abc' }, BODY, 0)).toMatchObject({
      id: 'abc',
      headers: { 'x-id': 'abc' },
    });
    expect(unsigned('X-Id').verify({ 'x-id': '\u0000' }, BODY, 0)).toMatchObject({ id: hash, headers: {} });
    expect(unsigned().verify({ 'x-id': 'abc' }, BODY, 0)).toMatchObject({ id: hash });
  });
});
