import { fileLines } from '../archive/file-lines.ts';
import type { Bytes } from '../archive/place.ts';
import type { Subject } from '../core/erasure.ts';
import { IdSearch } from '../core/id-search.ts';
import { canonicalId } from '../core/named-ids.ts';
import { isRecord } from '../lib/is-record.ts';
import { decodedOrSame, jsonIn } from '../lib/parsed.ts';

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
export function isNotes(file: string): boolean {
  return NOTES.test(file);
}

/** Whether it is one that cannot go, as it says what an archive or an export is: its lines name types, teams and files. */
export function isLedger(file: string): boolean {
  return NOTES.test(file) && !OF_ANYBODY.test(file);
}

/**
 * The requests whose ids stand in such a file. They are full of numbers, hashes and names of types: an id that could be any of
 * these, such as `17`, stands there only where it is all of a text, or of a name in a path.
 * @throws what `searchFile` does
 */
export async function requestsInNotes(
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
