import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decompress, decompressSmall } from '../../src/receive/decompress.ts';
import { runCount } from '../support/run-count.ts';

const COMPRESS = { gzip: gzipSync, deflate: deflateSync, zstd: zstdCompressSync };

/** Text as bodies are, and worse: repetitions at every distance. */
const content = fc
  .tuple(
    fc.array(fc.string({ maxLength: 40 }), { minLength: 1, maxLength: 20 }),
    fc.nat(400),
    fc.uint8Array({ maxLength: 2000 }),
  )
  .map(([words, times, noise]) =>
    Buffer.concat([Buffer.from(words.join('').repeat(times)), noise, Buffer.from(words.join(''))]),
  );

describe('decompression', () => {
  it('gives back exactly what was compressed, whatever window it was compressed for, and stops at its limit', () => {
    const window = fc.integer({ min: 10, max: 24 });
    fc.assert(
      fc.property(content, window, fc.integer({ min: 0, max: 6 }), (body, lgwin, quality) => {
        const params = {
          [constants.BROTLI_PARAM_LGWIN]: lgwin,
          [constants.BROTLI_PARAM_QUALITY]: quality,
        };
        const limit = body.length + 1;
        const packed = brotliCompressSync(body, { params });
        expect(decompressSmall(packed, 'br', limit)).toEqual({ ok: true, body });
        if (body.length < 2) return;
        expect(decompressSmall(packed, 'br', body.length - 1)).toEqual({ ok: false, tooLarge: true });
      }),
      { numRuns: runCount({ quick: 20, long: 100 }) },
    );
    for (const [encoding, compress] of Object.entries(COMPRESS)) {
      fc.assert(
        fc.property(content, (body) => {
          const kind = encoding as keyof typeof COMPRESS;
          expect(decompressSmall(compress(body), kind, body.length + 1)).toEqual({ ok: true, body });
        }),
        { numRuns: runCount({ quick: 10, long: 50 }) },
      );
    }
  });

  it('is the same aside and at once, on bodies larger than any window it may shrink', async () => {
    const line = Buffer.from('{"made":"up","value":0.125}\n');
    for (const size of [100_000, 300_000, 3_000_000]) {
      const body = Buffer.alloc(size, line);
      for (const lgwin of [16, 18, 22, 24]) {
        const packed = brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_LGWIN]: lgwin } });
        expect(await decompress(packed, 'br', size)).toEqual({ ok: true, body });
        expect(await decompress(packed, 'br', size - 1)).toEqual({ ok: false, tooLarge: true });
      }
    }
  });

  it('takes several gzip members or zstd frames, and nothing behind the end of anything', () => {
    for (const [encoding, compress] of Object.entries({ ...COMPRESS, br: brotliCompressSync })) {
      const kind = encoding as 'gzip' | 'deflate' | 'br' | 'zstd';
      const packed = compress(Buffer.from('{}'));
      for (const rest of ['x', '\0', ' ', '{}'.repeat(20)]) {
        const trailing = Buffer.concat([packed, Buffer.from(rest)]);
        expect(decompressSmall(trailing, kind, 1000)).toEqual({ ok: false, tooLarge: false });
      }
      if (kind !== 'gzip' && kind !== 'zstd') continue;
      expect(decompressSmall(Buffer.concat([packed, packed]), kind, 1000)).toEqual({
        ok: true,
        body: Buffer.from('{}{}'),
      });
    }
  });

  it('takes skippable zstd frames, and the limit is of all frames together', async () => {
    const [frame, skippable] = [
      zstdCompressSync(Buffer.alloc(600, 'a')),
      Buffer.from([0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9]),
    ];
    const bytes = Buffer.concat([skippable, frame, skippable, frame]);
    const body = Buffer.alloc(1200, 'a');
    for (const undo of [decompressSmall, decompress]) {
      expect(await undo(bytes, 'zstd', 1200)).toEqual({ ok: true, body });
      expect(await undo(bytes, 'zstd', 1199)).toEqual({ ok: false, tooLarge: true });
      const many = Buffer.concat(Array.from({ length: 17 }, () => skippable));
      expect(await undo(many, 'zstd', 1200)).toEqual({ ok: false, tooLarge: false });
    }
  });
});
