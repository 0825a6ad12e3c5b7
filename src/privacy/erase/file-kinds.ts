import { basename } from 'node:path';
import { parseHead, parseRecord } from '../../core/archive-record.ts';
import { CLAIMS_FOLDER, isOldParquet, PART_EXTENSION, SENT_EXTENSION } from '../../core/archive.ts';
import type { Ownership, Owners } from '../../core/erasure.ts';
import { membersIn } from '../../lib/parsed.ts';
import { HIDES_CONTENT } from './not-searched.ts';
import { fileLines } from '../../archive/file-lines.ts';
import type { Bytes } from '../../archive/place.ts';

/**
 * What can be done about a file that holds an id:
 * - `lines`: NDJSON, archive records or rows of tables, also unfinished or sent on: the subjects' lines are taken out;
 * - `blob`: one event whole: removed;
 * - `plan`: the state of an unfinished backfill: the subjects' ids are taken out of it;
 * - `other`: nothing but to say so;
 * - `unreadable`: compressed in a way that bytes cannot be searched;
 * - `temporary`: what was being written when its writer was killed, an erasure or a sink that kept an event: removed;
 * - `lock`: SQLite's, and who holds it: whoever opens and closes one that this process holds releases it.
 */
export type FileKind = 'lines' | 'blob' | 'plan' | 'other' | 'unreadable' | 'lock' | 'temporary';

/** @param file relative to its store, `/`-separated */
export function kindOf(file: string): FileKind {
  const name = basename(file);
  if (/\.ndjson(\.gz|\.zst)?(\.part)?$/.test(name)) return 'lines';
  // Reading it fails, so who is to be erased waits for it.
  if (isOldParquet(name)) return 'lines';
  if (name.endsWith(PART_EXTENSION) || name.endsWith(SENT_EXTENSION)) return 'lines';
  if (file.startsWith(`${CLAIMS_FOLDER}/`) && /\.json(\.gz)?$/.test(name)) return 'blob';
  if (file.endsWith('_backfill/state.json')) return 'plan';
  if (/^\.(erase-[0-9a-f]{16}|[0-9a-f]{12})\.tmp$/.test(name)) return 'temporary';
  if (
    /^(lock|(manifest|repair|audit|ledger\.jsonl)\.lock|\.millrace-lock)(-journal|-owner(\.tmp)?)?$/.test(
      name,
    )
  )
    return 'lock';
  return HIDES_CONTENT.test(name) ? 'unreadable' : 'other';
}

/** Whether an erasure reads the file to know whose it is. */
export function isSearched(file: string): boolean {
  return ['lines', 'blob', 'other'].includes(kindOf(file));
}

/** Tables of people's data whose rows may not say whose they are, as the documents they are made of do not. */
const OWNERLESS_TABLES = new Set(['insurance', 'parsing_jobs', 'parsing_job_results']);

/** @param file relative to its store: `insurance.ndjson`, or `insurance/dt=…/part-000000.ndjson.gz` */
export function mayNameNobody(file: string): boolean {
  return file.split('/').some((part) => OWNERLESS_TABLES.has(part.split('.')[0] ?? ''));
}

/** Whether a row says whose it is. */
export function namesUser(row: Buffer): boolean {
  return textAt(membersIn(row.toString()), ROW_FIELDS.user) !== null;
}

/** Reads the envelope of what one line or one kept event holds. */
export class LineOwners {
  readonly #owners: Owners;
  readonly #fields: EnvelopeFields;

  constructor(owners: Owners, fields: EnvelopeFields) {
    this.#owners = owners;
    this.#fields = fields;
  }

  /**
   * The requests a line of NDJSON falls under.
   * @param line without its line break
   */
  ofLine(line: Buffer): readonly string[] {
    const head = parseHead(line)?.record;
    if (head === undefined) return this.#ofDocument(line, ROW_FIELDS);
    const { team_id: team, user_id: user, client_user_id: clientUser } = head;
    const requests = this.#owners.of({ team, user, clientUser });
    const parsed = parseRecord(line);
    // Its body can name another user than the record, which a replay believes.
    const others = parsed.ok ? this.#owners.of(this.#whose(parsed.body, this.#fields)) : [];
    const all = [...new Set([...requests, ...others])];
    return all.length > 0 || user !== null ? all : this.#owners.named(withDecoded(line), team);
  }

  /** The requests a kept event falls under. */
  ofEvent(body: Buffer): readonly string[] {
    return this.#ofDocument(body, this.#fields);
  }

  #ofDocument(text: Buffer, fields: EnvelopeFields): readonly string[] {
    const whose = this.#whose(text, fields);
    const requests = this.#owners.of(whose);
    // What names no user, or cannot be read, is theirs if it names them anywhere.
    return requests.length > 0 || whose.user !== null ? requests : this.#owners.named(text, whose.team);
  }

  #whose(text: Buffer, { team, user, clientUser }: EnvelopeFields): Ownership {
    const document = membersIn(text.toString());
    return {
      team: textAt(document, team),
      user: textAt(document, user),
      clientUser: textAt(document, clientUser),
    };
  }
}

/** Names of the top-level keys that hold an event's envelope. */
export interface EnvelopeFields {
  readonly team: string;
  readonly user: string;
  readonly clientUser: string;
}

/** Columns of tables, and the fields of what a backfill notes of each user. */
const ROW_FIELDS: EnvelopeFields = { team: 'team_id', user: 'user_id', clientUser: 'client_user_id' };

const BASE64 = /,"body_base64":"([A-Za-z0-9+/=]*)"\}$/;

/** A record's line, and behind it the body that stands in it as base64. */
function withDecoded(line: Buffer): Buffer {
  const [, encoded] = BASE64.exec(line.toString('latin1')) ?? [];
  return encoded === undefined ? line : Buffer.concat([line, Buffer.from(encoded, 'base64')]);
}

function textAt(document: Readonly<Record<string, unknown>>, key: string): string | null {
  const value = Object.hasOwn(document, key) ? document[key] : null;
  return typeof value === 'string' ? value : null;
}

/** Of whom a file is that nobody has to wait for: it can only be named on the receipt. */
export const NOBODY: readonly string[] = [];
/** Nobody waits for a name either: the manifest holds it for good, and a sink gives it to the next file of that type or team. */
export const NAMED_SO =
  'its name holds the id, its records do not; rename or remove it where no manifest lists it';
export const OWNERLESS = 'it has rows that do not say whose they are; recreate it without the user';

/** Whether some row of a table does not say whose it is. A file that is damaged has been refused before. */
export async function hasOwnerless(place: Bytes, file: string): Promise<boolean> {
  for await (const lines of fileLines(place, file))
    if (lines.some(({ bytes }) => bytes === null || !namesUser(bytes))) return true;
  return false;
}
