import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { folderError, MillraceError } from '../../core/errors.ts';
import { replaysBeside } from '../../core/place.ts';
import { errorCode } from '../../lib/durable.ts';
import { writeDurably } from '../../lib/new-file.ts';
import { jsonIn } from '../../lib/parsed.ts';

const time = z.iso.datetime({ offset: true }).optional();

/** What to replay, and where. Without users: other users of the machine can read command lines. */
export const replayOrderSchema = z.strictObject({
  /** `journal`, or the name of a sink with an archive. */
  from: z.string().min(1).max(200),
  /** `sink` or `sink:destination`; null for the routes. */
  to: z.string().min(1).max(500).nullable(),
  /** Prefixes of event types; empty for all. */
  types: z.array(z.string().min(1).max(500)).max(20).default([]),
  since: time,
  until: time,
});

export type ReplayOrder = z.output<typeof replayOrderSchema>;

const NAME = /^(console-[\w-]{12})\.json$/;

/** Started and unfinished replays on disk: a file for each order, beside the state folder of its replay. */
export class ReplayOrders {
  readonly #folder: string;

  /** @param journal its path: the files are beside it */
  constructor(journal: string) {
    this.#folder = replaysBeside(journal);
  }

  /** None before the first. @throws MillraceError folder_unwritable when the folder cannot be read */
  ids(): string[] {
    try {
      return readdirSync(this.#folder).flatMap((name) => NAME.exec(name)?.[1] ?? []);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return [];
      throw folderError(this.#folder, error);
    }
  }

  /** @throws MillraceError file_unusable when it is damaged; the system's error when it cannot be read */
  read(id: string): ReplayOrder {
    const file = this.#file(id);
    const { data } = replayOrderSchema.safeParse(jsonIn(readFileSync(file, 'utf8')));
    if (data !== undefined) return data;
    throw new MillraceError('file_unusable', `${file} is damaged: forget this replay, and count it again`);
  }

  write(id: string, order: ReplayOrder): Promise<void> {
    return writeDurably(this.#folder, `${id}.json`, JSON.stringify(order), 0o600);
  }

  remove(id: string): void {
    rmSync(this.#file(id), { force: true });
  }

  /** State folder of a replay, which it removes at its end. */
  stateOf(id: string): string {
    return join(this.#folder, id);
  }

  removeState(id: string): void {
    rmSync(this.stateOf(id), { recursive: true, force: true });
  }

  #file(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
}
