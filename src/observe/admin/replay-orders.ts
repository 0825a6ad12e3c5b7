import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { replaysBeside } from '../../core/place.ts';
import { writeDurably } from '../../lib/new-file.ts';

const time = z.iso.datetime({ offset: true }).optional();

/** What is played again, and where to. Names no user: what stands on a command line, every user of the machine can read. */
export const replayOrderSchema = z.strictObject({
  /** `journal`, or the name of a sink with an archive. */
  from: z.string().min(1).max(200),
  /** `sink` or `sink:destination`; null for where the routes lead. */
  to: z.string().min(1).max(500).nullable(),
  /** Beginnings of event types; none for all. */
  types: z.array(z.string().min(1).max(500)).max(20).default([]),
  since: time,
  until: time,
});

export type ReplayOrder = z.output<typeof replayOrderSchema>;

const NAME = /^(console-[\w-]{12})\.json$/;

/** What was started and has not come to its end, on disk: a file for each order, and beside it the folder its replay works in. */
export class ReplayOrders {
  readonly #folder: string;

  /** @param journal beside which they lie */
  constructor(journal: string) {
    this.#folder = replaysBeside(journal);
  }

  ids(): string[] {
    try {
      return readdirSync(this.#folder).flatMap((name) => NAME.exec(name)?.[1] ?? []);
    } catch {
      return [];
    }
  }

  read(id: string): ReplayOrder | null {
    try {
      const text = readFileSync(this.#file(id), 'utf8');
      return replayOrderSchema.safeParse(JSON.parse(text)).data ?? null;
    } catch {
      return null;
    }
  }

  write(id: string, order: ReplayOrder): Promise<void> {
    return writeDurably(this.#folder, `${id}.json`, JSON.stringify(order), 0o600);
  }

  /** It has come to its end. */
  remove(id: string): void {
    rmSync(this.#file(id), { force: true });
  }

  /** Folder of a replay; it removes that itself when it has come to its end. */
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
