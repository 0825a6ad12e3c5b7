import { expect, test } from 'vitest';
import { HalfSip } from '../../src/lib/half-sip.ts';

// From the reference implementation of SipHash, vectors.h: inputs 00, 01, … of each even length, key 00 … 07.
test.each([
  [0, 'a9359f5b'],
  [2, 'fa62a603'],
  [4, '2a6e4689'],
])('a text of %i bytes has the hash of the reference', (length, expected) => {
  const text = Buffer.from(Array.from({ length }, (_, index) => index)).toString('utf16le');
  const out = Buffer.alloc(4);
  out.writeUInt32LE(new HalfSip(Buffer.from('0001020304050607', 'hex')).ofText(text));
  expect(out.toString('hex')).toBe(expected);
});
