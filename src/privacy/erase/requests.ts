import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { type ErasureRequest, Owners, type Subject } from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { canonicalId } from '../../core/named-ids.ts';
import { listNames, makeFolder, namesIn, OWNER_ONLY, syncFolder } from '../../lib/durable.ts';
import { UNFINISHED, writeDurably } from '../../lib/new-file.ts';
import { stampOf } from './erased-list.ts';

const FOLDER = 'requests';
const SUFFIX = '.json';

/**
 * Requests for erasures that are not done, a file each. The only place with the id of the user: the file is removed once the
 * receipt is written.
 */
export class Requests {
  readonly #folder: string;

  /** @param folder the erasure folder */
  constructor(folder: string) {
    this.#folder = join(folder, FOLDER);
  }

  /** Whether there are requests; does not block the process when the folder does not answer. */
  async areAny(): Promise<boolean> {
    const names = await listNames(this.#folder);
    return names.some((name) => name.endsWith(SUFFIX));
  }

  /** Oldest first. @throws MillraceError erasure_unreadable, naming the file */
  list(): ErasureRequest[] {
    return namesIn(this.#folder)
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => readRequest(join(this.#folder, name)))
      .sort((a, b) => (a.requested_at < b.requested_at ? -1 : 1));
  }

  /** Those that have begun. @throws MillraceError erasure_unreadable, naming the file */
  begun(): ErasureRequest[] {
    return this.list().filter(({ begun_at: at }) => at !== null);
  }

  /** Removes requests that a kill has left unfinished: they contain the id of a user. */
  async clear(): Promise<void> {
    for (const name of namesIn(this.#folder))
      if (name.endsWith(UNFINISHED)) await unlink(join(this.#folder, name));
  }

  find({ by, id, team }: Omit<Subject, 'request'>): ErasureRequest | null {
    const isSame = (one: ErasureRequest): boolean =>
      one.by === by && canonicalId(one.id) === canonicalId(id) && one.team === team;
    return this.list().find(isSame) ?? null;
  }

  /** @param grace milliseconds until it is due */
  async add(subject: Omit<Subject, 'request'>, now: number, grace: number): Promise<ErasureRequest> {
    const { by, id, team } = subject;
    const request: ErasureRequest = {
      request: randomBytes(8).toString('hex'),
      by,
      id,
      team,
      requested_at: new Date(now).toISOString(),
      due_at: new Date(now + grace).toISOString(),
      begun_at: null,
    };
    await this.save(request);
    return request;
  }

  async save(request: ErasureRequest): Promise<void> {
    makeFolder(this.#folder, 0o700);
    const text = `${JSON.stringify(request)}\n`;
    await writeDurably(this.#folder, `${request.request}${SUFFIX}`, text, OWNER_ONLY);
  }

  async remove({ request }: Pick<ErasureRequest, 'request'>): Promise<void> {
    await unlink(join(this.#folder, `${request}${SUFFIX}`));
    await syncFolder(this.#folder);
  }
}

/** Whether the request with this id is not done. */
export function isWaiting(folder: string, request: string): boolean {
  return existsSync(join(folder, FOLDER, `${request}${SUFFIX}`));
}

const TIME = z.iso.datetime();
const REQUEST: z.ZodType<ErasureRequest> = z.object({
  request: z.string(),
  by: z.enum(['user', 'client_user']),
  id: z.string().min(1),
  team: z.string().nullable(),
  requested_at: TIME,
  due_at: TIME,
  begun_at: TIME.nullable(),
});

function readRequest(path: string): ErasureRequest {
  const unreadable = (reason: string): MillraceError =>
    new MillraceError('erasure_unreadable', `${path}: ${reason}`);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    // The parser's message would quote the file.
    throw unreadable(error instanceof SyntaxError ? 'not JSON' : messageOf(error));
  }
  const { data, error } = REQUEST.safeParse(value);
  if (data?.request === basename(path, SUFFIX)) return data;
  const members = error?.issues.map(({ path: [member = 'all of it'] }) => String(member)) ?? ['request'];
  throw unreadable(`not a request for an erasure: ${members.join(', ')}`);
}

/** Erasures in progress, for a reader of archives: data of their users may be gone from some places, and not from others. */
export class ErasuresInProgress {
  readonly #folder: string;
  #before = '';

  /** @param folder the erasure folder */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The users of erasures that have begun and are not done; null when there are none. @throws MillraceError erasure_unreadable */
  begun(): Owners | null {
    this.#before = this.#state();
    const begun = new Requests(this.#folder).begun();
    return begun.length === 0 ? null : new Owners(begun);
  }

  /** Whether an erasure has begun or ended since `begun` was called. */
  haveMoved(): boolean {
    return this.#state() !== this.#before;
  }

  /** Differs after each beginning and end; an erasure that did both has changed the list of erased users. */
  #state(): string {
    const begun = new Requests(this.#folder).begun().map(({ request }) => request);
    return [stampOf(this.#folder), ...begun].join();
  }
}
