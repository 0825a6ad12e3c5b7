import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../src/core/errors.ts';
import type { Verifier } from '../../../src/core/verifier.ts';

type Headers = Record<string, string>;

/** How one scheme is made and how its sender signs. What a scheme has not is left out and its tests are skipped. */
export interface SchemeUnderTest {
  readonly name: string;
  readonly secrets: readonly [string, string];
  create(secrets: readonly string[], tolerance: number): Verifier;
  /** @param timestampMs milliseconds since the epoch */
  sign(secret: string, id: string, timestampMs: number, body: Buffer): Headers;
  readonly signatureHeader: string;
  readonly timestampHeader?: string;
  /** Whether the id is signed with the body. */
  readonly idHeader?: string;
}

const NOW = 1_795_000_000_000;
const TOLERANCE = 300_000;
const BODY = Buffer.from('{"event_type":"daily.data.meal.created"}');

/** What every scheme that signs promises. */
export function verifierContract(scheme: SchemeUnderTest): void {
  const [first, second] = scheme.secrets;
  const verifier = scheme.create([first], TOLERANCE);
  const both = scheme.create([first, second], TOLERANCE);
  const sign = (body = BODY, at = NOW, secret = first): Headers => scheme.sign(secret, 'msg_1', at, body);
  const verifyId = (id: string) => verifier.verify(scheme.sign(first, id, NOW, BODY), BODY, NOW);
  const codeOf = (headers: Headers, body = BODY, under = verifier): string | null => {
    const result = under.verify(headers, body, NOW);
    return result.ok ? null : result.code;
  };

  describe(`verifier contract: ${scheme.name}`, () => {
    it('accepts any bytes that were signed', () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
          const body = Buffer.from(bytes);
          expect(verifier.verify(sign(body), body, NOW)).toMatchObject({ ok: true, secret: 0 });
        }),
      );
    });

    it('fault 19: refuses a body with any one bit changed', () => {
      const headers = sign();
      fc.assert(
        fc.property(fc.nat(BODY.length * 8 - 1), (bit) => {
          const body = Buffer.from(BODY);
          body[bit >> 3] = body[bit >> 3]! ^ (1 << (bit & 7));
          expect(codeOf(headers, body)).toBe('signature_invalid');
        }),
      );
    });

    it('fault 19: refuses a signature with any character changed, added or taken away', () => {
      const headers = sign();
      const text = headers[scheme.signatureHeader]!;
      const bad = fc.nat(text.length - 1).chain((at) =>
        fc.oneof(
          fc
            .constantFrom('A', 'B', 'z', '0', '9', '+', '/', '=', '!')
            .map((c) => text.slice(0, at) + c + text.slice(at + 1)),
          fc.constant(text.slice(0, at)),
          fc.constant(`${text}A`),
        ),
      );
      fc.assert(
        fc.property(bad, (signature) => {
          fc.pre(signature.toLowerCase() !== text.toLowerCase());
          const code = codeOf({ ...headers, [scheme.signatureHeader]: signature });
          expect(code).toBe(signature === '' ? 'signature_missing' : 'signature_invalid');
        }),
      );
    });

    it('fault 19: refuses when a header is missing', () => {
      for (const name of [scheme.signatureHeader, scheme.timestampHeader, scheme.idHeader]) {
        if (name === undefined) continue;
        const { [name]: _left, ...rest } = sign();
        expect(codeOf(rest)).toBe('signature_missing');
      }
      expect(codeOf({})).toBe('signature_missing');
    });

    it('fault 18: accepts old and new secret, says which, and refuses the old one once it is gone', () => {
      expect(both.verify(sign(BODY, NOW, second), BODY, NOW)).toMatchObject({ ok: true, secret: 1 });
      expect(both.verify(sign(), BODY, NOW)).toMatchObject({ ok: true, secret: 0 });
      expect(codeOf(sign(), BODY, scheme.create([second], TOLERANCE))).toBe('signature_invalid');
    });

    it('says from the headers alone what they lack, and refuses none that could be genuine', () => {
      const early = (headers: Headers): string | null => {
        const result = verifier.precheck!(headers, NOW);
        return result.ok ? null : result.code;
      };
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
          expect(early(sign(Buffer.from(bytes)))).toBe(null);
        }),
      );
      for (const name of [scheme.signatureHeader, scheme.timestampHeader]) {
        if (name === undefined) continue;
        const { [name]: _left, ...rest } = sign();
        expect(early(rest)).toBe('signature_missing');
      }
      expect(early({ ...sign(), [scheme.signatureHeader]: 'x' })).toBe('signature_invalid');
      if (scheme.timestampHeader === undefined) return;
      expect(early(sign(BODY, NOW - TOLERANCE))).toBe(null);
      expect(early(sign(BODY, NOW - TOLERANCE - 1000))).toBe('timestamp_too_old');
      expect(early(sign(BODY, NOW + TOLERANCE + 1000))).toBe('timestamp_too_new');
    });

    it('returns headers that verify the same body again', () => {
      const result = verifier.verify({ ...sign(), 'user-agent': 'x' }, BODY, NOW);
      expect(result.ok && verifier.verify(result.headers, BODY, NOW)).toStrictEqual(result);
      expect(result.ok && Object.keys(result.headers)).not.toContain('user-agent');
    });

    it('names the place of a malformed secret, and never the secret', () => {
      expect(() => scheme.create([first, ''], TOLERANCE)).toThrow(/signing\.secrets\[1\]/);
      expect(() => scheme.create([], TOLERANCE)).toThrow(MillraceError);
    });

    it.skipIf(scheme.timestampHeader === undefined)(
      'faults 17 and 19: refuses what is too old or too new, and only the tolerance cares about the clock',
      () => {
        expect(codeOf(sign(BODY, NOW - TOLERANCE))).toBe(null);
        expect(codeOf(sign(BODY, NOW + TOLERANCE))).toBe(null);
        expect(codeOf(sign(BODY, NOW - TOLERANCE - 1000))).toBe('timestamp_too_old');
        expect(codeOf(sign(BODY, NOW + TOLERANCE + 1000))).toBe('timestamp_too_new');
        expect(scheme.create([first], 3 * TOLERANCE).verify(sign(), BODY, NOW + 2 * TOLERANCE).ok).toBe(true);
      },
    );

    it.skipIf(scheme.timestampHeader === undefined)(
      'reads whole seconds and nothing else as a timestamp',
      () => {
        const no = '1795000000.0|1.795e9| 1795000000|0x6afd|-1|+1|01|NaN|99999999999999999999'.split('|');
        for (const text of no)
          expect(codeOf({ ...sign(), [scheme.timestampHeader!]: text })).toBe('timestamp_invalid');
      },
    );

    it.skipIf(scheme.idHeader === undefined)(
      'fault 27: takes ids of visible ASCII up to 256 characters',
      () => {
        for (const id of ['../../x', 'CON', 'a'.repeat(256), '{"}'])
          expect(verifyId(id)).toMatchObject({ ok: true, id });
        for (const id of [
          'a b',
          'a\u0000b',
          'a\r\nb',
          'é',
          '\u001b[31m',
          'a'.repeat(257),
          'a'.repeat(10_240),
        ])
          expect(verifyId(id).ok).toBe(false);
      },
    );
  });
}
