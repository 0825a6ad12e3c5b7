import { pipeline } from 'node:stream';

const CHUNK = 64 * 1024;

/**
 * What stands at a path inside the document, as JSON text of its own: white space and escapes normalised, numbers as they
 * were written. For documents whose elements lie deeper than the first level; about a tenth as fast as looking at quotes and
 * brackets only.
 * @param path names of members joined with dots: `result.meals`
 * @throws Error while it is read, when the text is not JSON
 */
export async function* pickText(chunks: AsyncIterable<Buffer>, path: string): AsyncGenerator<Buffer> {
  const [{ default: chain }, { default: parser }, { default: pick }, { default: stringer }] =
    await Promise.all([
      import('stream-chain'),
      import('stream-json/parser.js'),
      import('stream-json/filters/pick.js'),
      import('stream-json/stringer.js'),
    ]);
  const text = chain([
    parser({ streamValues: false, jsonStreaming: true }),
    pick({ filter: path }),
    stringer({ useValues: true }),
  ]);
  pipeline(chunks, text, () => undefined);
  let gathered = '';
  for await (const piece of text as AsyncIterable<string>) {
    gathered += piece;
    if (gathered.length < CHUNK) continue;
    yield Buffer.from(gathered);
    gathered = '';
  }
  yield Buffer.from(gathered);
}
