import { deflateRawSync, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { Deflate } from '../../src/seal/deflate.ts';

const DICTIONARY = Buffer.from('{"event_type":"daily.data.meal.created","user_id":""}');

/** From what compresses well to what does not at all, around the length from which each text has a compressor of its own. */
const text = fc.oneof(
  fc.uint8Array({ maxLength: 3000 }),
  fc.uint8Array({ minLength: 8100, maxLength: 8300 }),
  fc
    .tuple(fc.string({ unit: 'binary' }), fc.nat(300))
    .map(([part, times]) => Buffer.from(part.repeat(times))),
);

test('each text can be read alone, whatever was compressed before it', () => {
  const deflate = new Deflate(DICTIONARY);
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (texts) => {
      const all = texts.map((each) => deflate.compress(Buffer.from(each)));
      for (const [i, each] of texts.entries())
        expect(inflateRawSync(all[i] ?? '', { dictionary: DICTIONARY }).equals(each)).toBe(true);
    }),
  );
});

test('texts come out as they do of node', () => {
  const deflate = new Deflate(DICTIONARY);
  const options = { level: 4, memLevel: 5, windowBits: 14, dictionary: DICTIONARY };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 8000 }), (bytes) => {
      expect(deflate.compress(Buffer.from(bytes)).equals(deflateRawSync(bytes, options))).toBe(true);
    }),
  );
});

test('a failure, as of memory that is short, spoils one text and none after it', () => {
  const deflate = new Deflate(DICTIONARY);
  const long = Buffer.from('{"user_id":"user-1"}'.repeat(50));
  deflate.compress(long);
  // The copy of what was compressed, in the library.
  vi.spyOn(Buffer, 'from').mockImplementationOnce(() => {
    throw new RangeError('Array buffer allocation failed');
  });
  expect(() => deflate.compress(long)).toThrow('allocation failed');
  vi.restoreAllMocks();
  for (let n = 0; n < 3; n += 1)
    expect(inflateRawSync(deflate.compress(long), { dictionary: DICTIONARY }).equals(long)).toBe(true);
});
