import { createHash, hash, randomBytes } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { ManifestChain } from '../../archive/manifest-chain.ts';
import type { ManifestWriter } from '../../archive/manifest-writer.ts';
import { CLAIMS_FOLDER } from '../../core/archive.ts';
import type { JournalEvent } from '../../core/event.ts';
import { IdSearch } from '../../core/id-search.ts';
import { readWhole } from '../../core/objects.ts';
import type { ClaimCheck } from '../../core/sink.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { ensureFolder, syncFolder } from '../../lib/durable.ts';
import { writeNew } from '../../lib/new-file.ts';
import { safeLevel } from './partition.ts';

/**
 * Writes one whole event to a file of its own: `claim-checks/{team}/{day}/{time}#{type}#{id}.json[.gz]`. It appears
 * complete or not at all, and the same event has the same path. The service's own pipelines have the user in the place of
 * the day; here the path stays in the manifest, and in what points at it, when the user is erased. So an id that names its user is hashed.
 * It is in the manifest before anything points at it.
 */
export async function keepInFolder(
  root: string,
  event: JournalEvent,
  compress: boolean,
  manifest: ManifestWriter,
): Promise<ClaimCheck> {
  const claim = await claimOf(event, compress);
  const folder = await ensureFolder(root, claim.place);
  const temporary = join(folder, `.${randomBytes(6).toString('hex')}.tmp`);
  await writeNew(temporary, claim.content);
  await rename(temporary, join(root, claim.check.path));
  await syncFolder(folder);
  await manifest.append(lineOf(event, claim));
  return claim.check;
}

/** The same as an object of a store. What is there already is not overwritten; of another event it is an error. */
export async function keepInStore(
  store: ObjectStore,
  event: JournalEvent,
  compress: boolean,
  { chain, signal }: { readonly chain: ManifestChain; readonly signal: AbortSignal },
): Promise<ClaimCheck> {
  const claim = await claimOf(event, compress);
  const { path } = claim.check;
  const { status } = await store.putIfAbsent(path, { bytes: claim.content }, signal);
  // Another version of zlib compresses the same event to other bytes.
  const content = status === 'taken' ? await presentContent(store, event, path, signal) : claim.content;
  await chain.append([lineOf(event, { ...claim, content })]);
  await chain.forget(path);
  return claim.check;
}

async function presentContent(
  store: ObjectStore,
  event: JournalEvent,
  path: string,
  signal: AbortSignal,
): Promise<Buffer> {
  const content = await readWhole(store, path, signal);
  const body = path.endsWith('.gz') ? await promisify(gunzip)(content) : content;
  if (!body.equals(event.body))
    throw new Error(`${store.url}/${path} is another event's; it is not overwritten`);
  return content;
}

/** Hex digits in the name of what was redacted. */
const CUT_NAME = 16;
/** Hex digits that stand for an id. */
const HASH_DIGITS = 32;

interface Claim {
  /** Of the event, or what stands for it. */
  readonly id: string;
  readonly check: ClaimCheck;
  /** Folder of its path. */
  readonly place: string;
  /** Of its file. */
  readonly content: Buffer;
}

async function claimOf(event: JournalEvent, compress: boolean): Promise<Claim> {
  const time = new Date(event.receivedAt).toISOString().replaceAll(':', '');
  const place = [CLAIMS_FOLDER, safeLevel(event.team), time.slice(0, 10)].join('/');
  const sha256 = hash('sha256', event.body, 'hex');
  const id = namesItsUser(event) ? standIn(event) : event.id;
  const what = safeLevel(`${event.type}#${id}`).replaceAll('%23', '#');
  // Each redaction of an event is kept for itself: what one target may read is not for another.
  const cut = event.handling.redacted === true ? `~${sha256.slice(0, CUT_NAME)}` : '';
  const path = `${place}/${time}#${what}${cut}.json${compress ? '.gz' : ''}`;
  const content = compress ? await promisify(gzip)(event.body) : event.body;
  return { id, check: { path, sha256, bytes: event.body.length }, place, content };
}

/** In the letters that an erasure searches the manifest for, or, of an id that is a word or a number, as all of a word. */
function namesItsUser({ id, user, clientUser }: JournalEvent): boolean {
  const users = [user, clientUser].flatMap((each) => (each === null || each === '' ? [] : [each]));
  const search = new IdSearch(users.map((each) => ({ request: '', by: 'user', id: each, team: null })));
  const isAWord = (each: string): boolean => {
    const text = each.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
    return new RegExp(String.raw`(?<![\p{L}\p{N}])${text}(?![\p{L}\p{N}])`, 'u').test(id);
  };
  return search.finds(Buffer.from(JSON.stringify(id))) || users.some(isAWord);
}

/** The same for the same event. Of its bytes too: when they are erased, nobody can confirm a guess of the id. */
function standIn({ source, id, body }: JournalEvent): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([source, id]))
    .update(body)
    .digest('hex');
  return `hash-${digest.slice(0, HASH_DIGITS)}`;
}

function lineOf({ type }: JournalEvent, { id, check, content }: Claim) {
  return {
    claim_check: id,
    file: check.path,
    event_type: type,
    bytes: content.length,
    sha256: hash('sha256', content, 'hex'),
    body_sha256: check.sha256,
  };
}
