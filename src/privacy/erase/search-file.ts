import { fileChunks, fileLines } from '../../archive/file-lines.ts';
import type { Bytes } from '../../archive/place.ts';
import type { Subject } from '../../core/erasure.ts';
import { IdSearch } from '../../core/id-search.ts';
import { canonicalId } from '../../core/named-ids.ts';
import { isRecord } from '../../lib/is-record.ts';
import { decodedOrSame, jsonIn } from '../../lib/parsed.ts';
import { checkSearchable } from './not-searched.ts';

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

/** Manifests and ledgers of exports, in a folder or in a store; how far pulls, replays, compactions and spools are. */
const NOTES =
  /(?:^|\/)(?:_(?:manifest|export)(?:\.jsonl$|\/)|(?:done|plan|state|compaction)\.json$|newest-segment$|segment-\d{10}-\d{10}\.jsonl$)/;
const FILE = /\/|\.(?:nd)?json|\.parquet/;
/** Levels of a path that are of a day, an hour, a type or a team. */
const PARTITION = /^(?:dt|hour|type|team)=/;

/** Names that other programs give their files too, and what is in ours, of which each has all of one. */
const OF_ANYBODY = /(?:^|\/)(?:done|plan|state|compaction)\.json$/;
const OURS = [
  ['fingerprint'],
  ['place', 'counts'],
  ['url', 'kind', 'made'],
  ['rejects'],
  ['loadedAt'],
  ['host', 'process'],
];

/** Whether it holds JSON about other files, a document a line, as this program writes it. */
function isNotes(file: string): boolean {
  return NOTES.test(file);
}

/** Whether it is one that cannot go, as it says what an archive or an export is: its lines name types, teams and files. */
function isLedger(file: string): boolean {
  return NOTES.test(file) && !OF_ANYBODY.test(file);
}

/**
 * The requests whose ids stand in such a file. They are full of numbers, hashes and names of types: an id that could be any of
 * these, such as `17`, stands there only where it is all of a text, or of a name in a path.
 * @throws what `searchFile` does
 */
async function requestsInNotes(
  place: Bytes,
  file: string,
  subjects: readonly Subject[],
): Promise<{ readonly requests: readonly string[]; readonly bytes: number }> {
  const search = new IdSearch(subjects);
  const anywhere = new IdSearch(subjects, 'anywhere');
  const byId = Map.groupBy(subjects, ({ id }) => canonicalId(id));
  const requests = new Set<string>();
  let bytes = 0;
  for await (const lines of fileLines(place, file))
    for (const { number, bytes: line } of lines) {
      if (line === null) throw new Error(`line ${number} is too long to search`);
      bytes += line.length;
      // What is not JSON is searched as bytes alone.
      const value = jsonIn(line.toString());
      const isOurs =
        !OF_ANYBODY.test(file) ||
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

/** The text itself; of a path its levels, and what they begin with before their extension. */
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
