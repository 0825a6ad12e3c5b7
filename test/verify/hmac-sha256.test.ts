import { createHmac, createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HmacSha256 } from '../../src/verify/hmac-sha256.ts';

const printable = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
});

const bytes = (min: number, max: number) => fc.uint8Array({ minLength: min, maxLength: max });

test('it says what node’s own HMAC says, for any key, prefix and body, call after call', () => {
  fc.assert(
    fc.property(
      bytes(1, 200),
      fc.array(fc.tuple(printable, bytes(0, 3000)), { minLength: 1 }),
      (key, calls) => {
        const hmac = new HmacSha256(createSecretKey(key));
        for (const [prefix, body] of calls) {
          const expected = createHmac('sha256', key).update(prefix).update(body).digest('base64');
          expect(hmac.sign(prefix, Buffer.from(body))).toBe(expected);
        }
      },
    ),
  );
});

test.each([65_535, 65_536, 65_537, 1_000_000])('and for %i bytes', (length) => {
  const key = Buffer.alloc(32, 7);
  const hmac = new HmacSha256(createSecretKey(key));
  for (const prefix of ['', 'msg_1.1700000000.']) {
    const body = Buffer.alloc(length - prefix.length, 'x');
    const expected = createHmac('sha256', key).update(prefix).update(body).digest('base64');
    expect(hmac.sign(prefix, body)).toBe(expected);
  }
});
