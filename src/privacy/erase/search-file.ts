import { fileChunks, fileLines } from '../../archive/file-lines.ts';
import type { Bytes } from '../../archive/place.ts';
import type { Subject } from '../../core/erasure.ts';
import { IdSearch } from './id-search.ts';
import { canonicalId } from '../../core/named-ids.ts';
import { decodedOrSame, isRecord, jsonIn } from '../../lib/parsed.ts';
import { checkSearchable } from './not-searched.ts';

/** A body as base64 hides its ids: a line with one is always parsed. */
const BASE64_KEY = Buffer.from('"body_base64":"');

/**
 * Whether a file may hold one of the ids. Searches its bytes, decompressed by its extension, up to the first find.
 * @returns also the number of bytes looked at, decompressed
 * @throws NotSearched, a zlib error when the file is damaged, or what the place throws
 */
export async function searchFile(
  place: Bytes,
  file: string,
  search: IdSearch,
  signal: AbortSignal,
): Promise<{ readonly found: boolean; readonly bytes: number }> {
  let bytes = 0;
  for await (const pieces of piecesOf(place, file, Math.max(search.overlap, BASE64_KEY.length - 1))) {
    signal.throwIfAborted();
    bytes += pieces.at(-1)?.length ?? 0;
    if (pieces.some((piece) => mayHold(piece, search))) return { found: true, bytes };
  }
  return { found: false, bytes };
}

/** The requests whose ids are in a file that cannot be rewritten. @throws as `searchFile` does */
export async function requestsInOther(place: Bytes, file: string, subjects: readonly Subject[]) {
  if (NOTES.test(file)) return requestsInNotes(place, file, subjects);
  const search = new IdSearch(subjects, 'anywhere');
  const requests = new Set<string>();
  let bytes = 0;
  for await (const pieces of piecesOf(place, file, search.overlap)) {
    bytes += pieces.at(-1)?.length ?? 0;
    for (const piece of pieces) for (const request of search.requestsIn(piece)) requests.add(request);
  }
  return { requests: [...requests], bytes };
}

/** The requests that wait for such a file, and what is reported. @param requests those whose ids are in it */
export function leftOfOther(file: string, requests: readonly string[]) {
  // A manifest or a list of exports cannot be removed, and names types, teams and files.
  if (NOTES.test(file) && !OF_ANY_PROGRAM.test(file))
    return { requests: [], reason: 'it lists a type, a team or a file with this name; it stays as it is' };
  return { requests, reason: 'this kind of file cannot be rewritten' };
}

/** The chunks of a file, each behind the seam with the chunk before; joining whole chunks would copy the file. */
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

/** Whether a line or a piece of a file has to be parsed. */
export function mayHold(bytes: Buffer, search: IdSearch): boolean {
  return search.finds(bytes) || bytes.includes(BASE64_KEY);
}

/** JSON about other files that this program writes: manifests, lists of exports, states of pulls, replays and compactions. */
const NOTES =
  /(?:^|\/)(?:_(?:manifest|export)(?:\.jsonl$|\/)|(?:done|plan|state|compaction)\.json$|newest-segment$|segment-\d{10}-\d{10}\.jsonl$)/;
const FILE = /\/|\.(?:nd)?json|\.parquet/;
/** Levels of a path that name a day, an hour, a type or a team. */
const PARTITION = /^(?:dt|hour|type|team)=/;

/** Names that other programs use too. Ours have all the members of one of these lists. */
const OF_ANY_PROGRAM = /(?:^|\/)(?:done|plan|state|compaction)\.json$/;
const OURS = [
  ['fingerprint'],
  ['place', 'counts'],
  ['url', 'kind', 'made'],
  ['rejects'],
  ['loadedAt'],
  ['host', 'process'],
];

/**
 * The requests whose ids are in JSON about other files. It is full of numbers, hashes and types: an id such as `17` counts only
 * as a whole text, or a whole name in a path.
 */
async function requestsInNotes(place: Bytes, file: string, subjects: readonly Subject[]) {
  const search = new IdSearch(subjects);
  const anywhere = new IdSearch(subjects, 'anywhere');
  const byId = Map.groupBy(subjects, ({ id }) => canonicalId(id));
  const requests = new Set<string>();
  let bytes = 0;
  for await (const lines of fileLines(place, file))
    for (const { number, bytes: line } of lines) {
      if (line === null) throw new Error(`line ${number} is too long to search`);
      bytes += line.length;
      // A line that is not JSON is searched as bytes only.
      const value = jsonIn(line.toString());
      const isOurs =
        !OF_ANY_PROGRAM.test(file) ||
        OURS.some((names) => names.every((name) => isRecord(value) && name in value));
      for (const request of (isOurs ? search : anywhere).requestsIn(line)) requests.add(request);
      for (const text of textsIn(value))
        for (const name of namesIn(text))
          for (const { request } of byId.get(canonicalId(name)) ?? []) requests.add(request);
    }
  return { requests: [...requests], bytes };
}

function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  if (Array.isArray(value)) for (const each of value) yield* textsIn(each);
  else if (isRecord(value))
    for (const [name, each] of Object.entries(value)) {
      yield name;
      yield* textsIn(each);
    }
}

/** The text itself; of a path also its levels, with and without their extensions. */
function* namesIn(text: string): Generator<string> {
  yield text;
  if (!FILE.test(text)) return;
  for (const level of text.split(/[/#]/)) {
    if (PARTITION.test(level)) continue;
    const name = decodedOrSame(level).replace(/^.*=/s, '');
    yield name;
    yield name.replace(/\..*$/s, '');
  }
}
