import { basename } from 'node:path';
import { fileLines } from '../../archive/file-lines.ts';
import type { Bytes } from '../../archive/place.ts';
import { parseHead, parseRecord } from '../../core/archive-record.ts';
import { CLAIMS_FOLDER, isOldParquet, PART_EXTENSION, SENT_EXTENSION } from '../../core/archive.ts';
import type { Ownership, Owners } from '../../core/erasure.ts';
import { membersIn } from '../../lib/parsed.ts';
import { HIDES_CONTENT } from './not-searched.ts';

/**
 * What an erasure does with a file that holds an id:
 * - `lines`: NDJSON, archive records or rows of tables, also unfinished or sent on: the subjects' lines are removed;
 * - `blob`: one event kept whole: the file is removed;
 * - `plan`: the state of an unfinished backfill: the subjects' ids are removed from it;
 * - `other`: reported only;
 * - `unreadable`: its bytes cannot be searched;
 * - `temporary`: left by an erasure or a sink that was killed while it wrote: removed;
 * - `lock`: an SQLite lock or its owner's name, never opened: closing a lock that this process holds releases it.
 */
export type FileKind = 'lines' | 'blob' | 'plan' | 'other' | 'unreadable' | 'lock' | 'temporary';

/** @param file relative to its archive, `/`-separated */
export function kindOf(file: string): FileKind {
  const name = basename(file);
  if (/\.ndjson(\.gz|\.zst)?(\.part)?$/.test(name)) return 'lines';
  // Reading it fails, so that the requests wait for it.
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

/** Whether an erasure reads the whole file. */
export function isSearched(file: string): boolean {
  return ['lines', 'blob', 'other'].includes(kindOf(file));
}

/** Tables of users' data made of documents that do not name the user. */
const OWNERLESS_TABLES = new Set(['insurance', 'parsing_jobs', 'parsing_job_results']);

/** @param file `insurance.ndjson`, or `insurance/dt=…/part-000000.ndjson.gz` */
export function mayHaveOwnerlessRows(file: string): boolean {
  return file.split('/').some((part) => OWNERLESS_TABLES.has(part.split('.')[0] ?? ''));
}

/** Whether some row of a table does not name its user. */
export async function hasOwnerlessRow(place: Bytes, file: string): Promise<boolean> {
  for await (const lines of fileLines(place, file))
    for (const { bytes } of lines)
      if (bytes === null || textAt(membersIn(bytes.toString()), ROW_FIELDS.user) === null) return true;
  return false;
}

/** Finds the requests that a line or a kept event falls under. */
export class LineOwners {
  readonly #owners: Owners;
  readonly #fields: EnvelopeFields;

  constructor(owners: Owners, fields: EnvelopeFields) {
    this.#owners = owners;
    this.#fields = fields;
  }

  /** @param line of NDJSON, without its line break */
  ofLine(line: Buffer): readonly string[] {
    const head = parseHead(line)?.record;
    if (head === undefined) return this.#ofDocument(line, ROW_FIELDS);
    const { team_id: team, user_id: user, client_user_id: clientUser } = head;
    const requests = this.#owners.of({ team, user, clientUser });
    const parsed = parseRecord(line);
    // A replay goes by the body, which can name another user than the record.
    const others = parsed.ok ? this.#owners.of(this.#whose(parsed.body, this.#fields)) : [];
    const all = [...new Set([...requests, ...others])];
    return all.length > 0 || user !== null ? all : this.#owners.named(withDecoded(line), team);
  }

  ofEvent(body: Buffer): readonly string[] {
    return this.#ofDocument(body, this.#fields);
  }

  #ofDocument(text: Buffer, fields: EnvelopeFields): readonly string[] {
    const whose = this.#whose(text, fields);
    const requests = this.#owners.of(whose);
    // A document that names no user, or cannot be read, belongs to every subject whose id is anywhere in it.
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
export type EnvelopeFields = Readonly<Record<keyof Ownership, string>>;

/** Of rows of tables, and of a backfill's outcomes. */
const ROW_FIELDS: EnvelopeFields = { team: 'team_id', user: 'user_id', clientUser: 'client_user_id' };

const BASE64 = /,"body_base64":"([A-Za-z0-9+/=]*)"\}$/;

/** A record's line with its body of base64 decoded behind it. */
function withDecoded(line: Buffer): Buffer {
  const [, encoded] = BASE64.exec(line.toString('latin1')) ?? [];
  return encoded === undefined ? line : Buffer.concat([line, Buffer.from(encoded, 'base64')]);
}

function textAt(document: Readonly<Record<string, unknown>>, key: string): string | null {
  const value = Object.hasOwn(document, key) ? document[key] : null;
  return typeof value === 'string' ? value : null;
}
