import fc from 'fast-check';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decompressed } from '../../../src/tables/ndjson/input.ts';
import { pickText } from '../../../src/tables/ndjson/pick.ts';
import { anyMeal, bulkDocument, chunkSizes, lineMeal } from './documents.ts';
import { referenceRows } from './reference.ts';
import { chunked, shapeAll, type Shaped } from './support.ts';
import { runCount } from '../../support/run-count.ts';

const codesOf = ({ rejects }: Shaped): string[] => rejects.map(({ table, code }) => `${table} ${code}`);

async function quickRows(chunks: AsyncIterable<Buffer>, lines = false): Promise<object> {
  const shaped = await shapeAll(chunks, { lines });
  return { rows: shaped.rows, rejects: codesOf(shaped) };
}

describe('the quick way gives the rows of the plain way, byte for byte', () => {
  test('for wrapped documents', async () => {
    await fc.assert(
      fc.asyncProperty(bulkDocument, chunkSizes, async ({ text }, sizes) => {
        expect(await quickRows(chunked(text, sizes))).toEqual(await referenceRows(text));
      }),
      { numRuns: runCount({ quick: 100, long: 500 }) },
    );
  });

  test('for arrays, several documents in a row, and NDJSON', async () => {
    const meals = fc.array(anyMeal, { minLength: 1, maxLength: 3 });
    const lines = fc.array(lineMeal, { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(meals, lines, chunkSizes, async (items, ndjson, sizes) => {
        const array = `\n[${items.join(' ,\t')}]`;
        expect(await quickRows(chunked(array, sizes))).toEqual(await referenceRows(array));
        const documents = `{"data":[${items.join(',')}],"next":null} [${items.join(',')}]`;
        expect(await quickRows(chunked(documents, sizes))).toEqual(await referenceRows(documents));
        const lined = ndjson.join('\n');
        expect(await quickRows(chunked(lined, sizes))).toEqual(await referenceRows(lined));
        const anything = items.map((item) => item.replaceAll(/[\r\n]/g, ' ')).join('\r\n');
        expect(await quickRows(chunked(anything, sizes), true)).toEqual(await referenceRows(anything, true));
      }),
      { numRuns: runCount({ quick: 40, long: 200 }) },
    );
  });

  test('for compressed documents', async () => {
    const pack = fc.constantFrom<(text: string) => Buffer>(
      gzipSync,
      zstdCompressSync,
      // Members one after the other are one text.
      (text) => Buffer.concat([gzipSync(text.slice(0, 9)), gzipSync(text.slice(9))]),
    );
    await fc.assert(
      fc.asyncProperty(bulkDocument, chunkSizes, pack, async ({ text }, sizes, compress) => {
        const packed = chunked(compress(text), sizes);
        expect(await quickRows(decompressed(packed))).toEqual(await referenceRows(text));
      }),
      { numRuns: runCount({ quick: 30, long: 150 }) },
    );
  });

  test.each(['1.10', '1e400', '0e400', '12345678901234567890', '-0', '0.30000000000000004'])(
    'for the number %s, whose text is kept',
    async (number) => {
      const text = `{"meals":[{"id":"a","macros":{"carbs":${number}},"made_up":[${number}]}]}`;
      expect(await quickRows(chunked(text, [7]))).toEqual(await referenceRows(text));
      const { rows } = await shapeAll(chunked(text, [7]));
      expect(rows['meals']).toContain(number);
    },
  );
});

describe('--at, where stream-json finds the elements', () => {
  test('gives the same rows', async () => {
    await fc.assert(
      fc.asyncProperty(bulkDocument, chunkSizes, async ({ text }, sizes) => {
        const quick = await shapeAll(chunked(text, sizes));
        const picked = await shapeAll(pickText(chunked(text, sizes), 'meals'));
        expect(picked.rows).toEqual(quick.rows);
        expect(codesOf(picked)).toEqual(codesOf(quick));
        expect(new Set(picked.unknown)).toEqual(new Set(quick.unknown));
      }),
      { numRuns: runCount({ quick: 40, long: 200 }) },
    );
  });

  test('gives the same rows of a document that is cut anywhere, and says so once', async () => {
    await fc.assert(
      fc.asyncProperty(bulkDocument, fc.nat(), chunkSizes, async ({ text }, at, sizes) => {
        const start = text.indexOf('"meals"') + 12;
        const cut = Buffer.from(text).subarray(0, start + (at % (text.length - start)));
        const quick = await shapeAll(chunked(cut, sizes));
        const picked = await shapeAll(pickText(chunked(cut, sizes), 'meals'));
        expect(picked.rows).toEqual(quick.rows);
        expect(quick.rejects.filter(({ code }) => code === 'cut')).toHaveLength(1);
        // Of the picked text the parser says that it is broken; of all else both say the same.
        expect(codesOf(picked)).toEqual(codesOf(quick).map((code) => code.replace(/ cut$/, ' broken')));
      }),
      { numRuns: runCount({ quick: 40, long: 200 }) },
    );
  });

  test('reaches arrays at any depth', async () => {
    const text = '{"result":{"pages":1,"meals":[{"id":"a","data":{"Tea":{"macros":{"carbs":1.10}}}}]}}';
    const { rows } = await shapeAll(pickText(chunked(text, [5]), 'result.meals'));
    expect(rows).toEqual({
      meals: '{"id":"a"}\n',
      meal_items: '{"meal_id":"a","item_index":0,"name":"Tea","carbs_g":1.10}\n',
    });
  });
});
