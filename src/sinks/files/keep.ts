import { createHash, hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { CLAIMS_FOLDER } from '../../core/archive.ts';
import type { JournalEvent } from '../../core/event.ts';
import { IdSearch } from '../../privacy/erase/id-search.ts';
import type { ClaimCheck } from '../../core/sink.ts';
import type { Archive } from './archive.ts';
import type { FilesOptions } from './config.ts';
import { safeLevel } from './partition.ts';

/** Hex digits in the name of a redacted event. */
const REDACTED_DIGITS = 16;
/** Hex digits that replace an id. */
const ID_DIGITS = 32;

/**
 * Writes one whole event to a file of its own, `claim-checks/{team}/{day}/{time}#{type}#{id}.json[.gz]`, and lists it in the
 * manifest. The same event has the same path.
 *
 * The service's own pipelines have the user in this path. Here the path stays in the manifest, and in pointers, when the user is
 * erased; therefore it has the day instead, and an id that names its user is hashed.
 * @throws Error for an archive that is sealed: the file would not be; `check` refuses such a config
 */
export async function keepEvent(
  archive: Archive,
  event: JournalEvent,
  { path, compress, encrypt }: FilesOptions,
): Promise<ClaimCheck> {
  if (encrypt !== undefined) throw new Error(`${path} is sealed: it cannot keep large events`);
  const isZipped = compress !== 'none';
  const time = new Date(event.receivedAt).toISOString().replaceAll(':', '');
  const body_sha256 = hash('sha256', event.body, 'hex');
  const id = namesItsUser(event) ? hashedId(event) : event.id;
  const what = safeLevel(`${event.type}#${id}`).replaceAll('%23', '#');
  // Each redaction of an event has a file of its own: targets may read different parts of it.
  const redaction = event.handling.redacted === true ? `~${body_sha256.slice(0, REDACTED_DIGITS)}` : '';
  const name = `${time}#${what}${redaction}.json${isZipped ? '.gz' : ''}`;
  const file = [CLAIMS_FOLDER, safeLevel(event.team), time.slice(0, 10), name].join('/');
  const content = isZipped ? await promisify(gzip)(event.body) : event.body;
  const kept = await archive.putEvent(file, content, event);
  const facts = { bytes: kept.length, sha256: hash('sha256', kept, 'hex') };
  await archive.list([{ claim_check: id, file, event_type: event.type, ...facts, body_sha256 }]);
  await archive.forget(file);
  return { path: file, sha256: body_sha256, bytes: event.body.length };
}

/** True when an erasure of its user would find the id, or when the id has the user's id as a whole word. */
function namesItsUser({ id, user, clientUser }: JournalEvent): boolean {
  const users = [user, clientUser].flatMap((each) => (each === null || each === '' ? [] : [each]));
  const search = new IdSearch(users.map((each) => ({ request: '', by: 'user', id: each, team: null })));
  const isAWord = (each: string): boolean => {
    const text = each.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
    return new RegExp(String.raw`(?<![\p{L}\p{N}])${text}(?![\p{L}\p{N}])`, 'u').test(id);
  };
  return search.finds(Buffer.from(JSON.stringify(id))) || users.some(isAWord);
}

/** The same for the same event. Hashes the body too: once that is erased, no guess of the id can be confirmed. */
function hashedId({ source, id, body }: JournalEvent): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([source, id]))
    .update(body)
    .digest('hex');
  return `hash-${digest.slice(0, ID_DIGITS)}`;
}
