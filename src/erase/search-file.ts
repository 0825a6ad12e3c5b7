import { fileChunks } from '../archive/file-lines.ts';
import type { Bytes } from '../archive/place.ts';
import type { Subject } from '../core/erasure.ts';
import { IdSearch } from '../core/id-search.ts';
import { checkSearchable } from './not-searched.ts';
import { isLedger, isNotes, requestsInNotes } from './notes.ts';

/** Bodies that stand in a record as base64 hide their ids: where there is one, the lines must be looked at. */
const BASE64_KEY = Buffer.from('"body_base64":"');

export interface Searched {
  readonly found: boolean;
  /** Bytes looked at, decompressed. */
  readonly bytes: number;
}

/**
 * Whether a file may hold one of the ids, decompressed by its extension: a search over bytes, at about the speed they
 * are decompressed. Stops at the first find.
 * @throws NotSearched, a zlib error when the file is damaged, or what the place throws
 */
export async function searchFile(
  place: Bytes,
  file: string,
  search: IdSearch,
  signal: AbortSignal,
): Promise<Searched> {
  let bytes = 0;
  for await (const pieces of piecesOf(place, file, Math.max(search.overlap, BASE64_KEY.length - 1))) {
    signal.throwIfAborted();
    bytes += pieces.at(-1)?.length ?? 0;
    if (pieces.some((piece) => mayHold(piece, search))) return { found: true, bytes };
  }
  return { found: false, bytes };
}

/** The requests whose ids stand in a file that cannot be rewritten. Throws what `searchFile` does. */
export async function requestsInOther(
  place: Bytes,
  file: string,
  subjects: readonly Subject[],
): Promise<{ readonly requests: readonly string[]; readonly bytes: number }> {
  if (isNotes(file)) return requestsInNotes(place, file, subjects);
  const search = new IdSearch(subjects, 'anywhere');
  const requests = new Set<string>();
  let bytes = 0;
  for await (const pieces of piecesOf(place, file, search.overlap)) {
    bytes += pieces.at(-1)?.length ?? 0;
    for (const piece of pieces) for (const request of search.requestsIn(piece)) requests.add(request);
  }
  return { requests: [...requests], bytes };
}

/** Who has to wait for such a file, and what is said of it. @param requests whose ids stand in it */
export function leftOfOther(
  file: string,
  requests: readonly string[],
): { readonly requests: readonly string[]; readonly reason: string } {
  if (!isLedger(file)) return { requests, reason: 'this kind of file cannot be rewritten' };
  return { requests: [], reason: 'a type, a team or a file that it lists is called so; it stays as it is' };
}

/**
 * The chunks of a file, each after the seam with the one before it: to join each chunk with the one before would copy all
 * of the file.
 */
async function* piecesOf(place: Bytes, file: string, overlap: number): AsyncGenerator<readonly Buffer[]> {
  let before: Buffer = Buffer.alloc(0);
  let isFirst = true;
  for await (const chunk of fileChunks(place, file)) {
    if (isFirst) checkSearchable(chunk);
    isFirst = false;
    const seam = Buffer.concat([before, chunk.subarray(0, overlap)]);
    yield [seam, chunk];
    const tail = chunk.length >= overlap ? chunk : seam;
    before = Buffer.from(tail.subarray(Math.max(0, tail.length - overlap)));
  }
}

/** Whether a line, or a piece of a file, needs to be parsed. */
export function mayHold(bytes: Buffer, search: IdSearch): boolean {
  return search.finds(bytes) || bytes.includes(BASE64_KEY);
}
