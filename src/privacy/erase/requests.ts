import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ErasureRequest, Subject } from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { canonicalId } from '../../core/named-ids.ts';
import { isMissing, makeFolder, OWNER_ONLY, syncFolder } from '../../lib/durable.ts';
import { UNFINISHED, writeDurably } from '../../lib/new-file.ts';

const FOLDER = 'requests';
const SUFFIX = '.json';

/**
 * Erasures that are asked for and not done, one file each. The only place that holds the id of whom to erase; the file
 * goes when the receipt is written.
 */
export class Requests {
  readonly #folder: string;

  /** @param folder the erasure folder */
  constructor(folder: string) {
    this.#folder = join(folder, FOLDER);
  }

  /** Whether there are any; nobody but who asked waits for a folder that does not answer. */
  async areAny(): Promise<boolean> {
    const names = await readdir(this.#folder).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    return names.some((name) => name.endsWith(SUFFIX));
  }

  /** Oldest first. @throws MillraceError erasure_unreadable, naming the file */
  list(): ErasureRequest[] {
    if (!existsSync(this.#folder)) return [];
    const requests = readdirSync(this.#folder)
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => readRequest(join(this.#folder, name)));
    return requests.sort((a, b) => (a.requested_at < b.requested_at ? -1 : 1));
  }

  /** Removes what a kill has left of a request that was being written: nothing else would, and it names whom to erase. */
  async clear(): Promise<void> {
    if (!existsSync(this.#folder)) return;
    for (const name of readdirSync(this.#folder))
      if (name.endsWith(UNFINISHED)) await unlink(join(this.#folder, name));
  }

  find(subject: Omit<Subject, 'request'>): ErasureRequest | null {
    return this.list().find((request) => isSame(request, subject)) ?? null;
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

/** Whether a request of this id is not done. */
export function isWaiting(folder: string, request: string): boolean {
  return existsSync(join(folder, FOLDER, `${request}${SUFFIX}`));
}

function isSame(one: Omit<Subject, 'request'>, other: Omit<Subject, 'request'>): boolean {
  return one.by === other.by && canonicalId(one.id) === canonicalId(other.id) && one.team === other.team;
}

function readRequest(path: string): ErasureRequest {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ErasureRequest;
  } catch (error) {
    // Not the parser's message: it quotes what it read.
    const reason = error instanceof SyntaxError ? 'not JSON' : messageOf(error);
    throw new MillraceError('erasure_unreadable', `${path}: ${reason}`);
  }
}
