import { createReadStream, existsSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { folderError } from '../core/errors.ts';
import { AppendFile } from '../lib/append-file.ts';
import { cutLines } from '../lib/lines.ts';
import { FolderRefused } from '../lib/folder-refused.ts';
import { fillNew, NewFile } from '../lib/new-file.ts';
import { goesOn, readState, WorkFolder, writeState } from '../lib/work-folder.ts';
import type { Counts } from './counts.ts';
import type { Place } from './tracker.ts';
import type { Unit } from './unit.ts';

const PLAN = 'plan.json';
const UNITS = 'units.ndjson';
const STATE = 'state.json';
const REFUSED = 'refused.ndjson';
const WRITE_AT_ONCE = 64 * 1024;

/** What is written once, when a replay starts. */
interface Plan {
  readonly id: string;
  /** Equal for the same command. */
  readonly fingerprint: string;
  readonly units: number;
  /** Of all files. */
  readonly bytes: number;
}

/** What is written again and again. */
interface State {
  readonly place: Place;
  readonly counts: Counts;
  readonly done: boolean;
}

export interface CheckpointOptions {
  readonly fingerprint: string;
  /** The id of the replay if it is a new one. */
  readonly id: string;
  /** Go on with what is there. */
  readonly resume: boolean;
  readonly list: () => AsyncIterable<Unit>;
}

/**
 * How far a replay has come: a small folder, every change on disk under its own name before the method resolves.
 * `plan.json` says what is replayed, `units.ndjson` the files as they were when it began, `state.json` how much of it every
 * sink has, and `refused.ndjson` which events a sink has refused (without their bodies).
 */
export class Checkpoint {
  readonly folder: string;
  readonly plan: Plan;
  readonly before: State | null;
  readonly #own: WorkFolder;
  #refused: Promise<AppendFile> | null = null;

  private constructor(own: WorkFolder, plan: Plan, before: State | null) {
    this.folder = own.path;
    this.#own = own;
    this.plan = plan;
    this.before = before;
  }

  /**
   * @throws MillraceError usage when there is nothing to resume, when something unfinished or of somebody else is there
   * and `resume` is false; folder_in_use, folder_unwritable
   */
  static async open(folder: string, options: CheckpointOptions): Promise<Checkpoint> {
    let own: WorkFolder | null = null;
    try {
      own = await WorkFolder.take(folder, 0o700);
      const plan = readState(folder, PLAN) as Plan | null;
      const state = readState(folder, STATE) as State | null;
      const { resume, fingerprint } = options;
      // Killed while it listed what there is to replay, it has sent nothing: it begins.
      const isListing = state === null && existsSync(join(folder, UNITS));
      if (resume && plan === null && !isListing)
        throw new FolderRefused(
          'not_ours',
          `there is nothing to resume in ${folder}: nothing was begun, or nobody remembers that it is finished`,
        );
      const isOver = state?.done === true && !resume;
      const otherwise = '--resume needs the same inputs, filters and targets';
      const run = { kind: 'replay', fingerprint, resume, otherwise };
      if (plan !== null && goesOn(folder, isOver ? null : plan.fingerprint, run))
        return new Checkpoint(own, plan, state);
      if (plan === null && !isOver) refuseStrangers(folder);
      return new Checkpoint(own, await begin(folder, options), null);
    } catch (error) {
      own?.release();
      // What the list of units ends with is not about this folder.
      throw own === null || error instanceof FolderRefused ? folderError(folder, error) : error;
    }
  }

  /** Whether a replay was begun in this folder, and has left something. */
  static isIn(folder: string): boolean {
    return existsSync(join(folder, PLAN));
  }

  /** The units from `first` on, with their indexes. */
  async *units(first: number): AsyncGenerator<[index: number, unit: Unit]> {
    for await (const lines of cutLines(createReadStream(join(this.folder, UNITS)))) {
      for (const { number, bytes } of lines) {
        if (number > first && bytes !== null) yield [number - 1, JSON.parse(bytes.toString()) as Unit];
      }
    }
  }

  async save(state: State): Promise<void> {
    await writeState(this.folder, STATE, state);
  }

  /** Notes a refused event. Resolves when the line is on disk. */
  async refuse(line: object): Promise<void> {
    this.#refused ??= this.#openRefused();
    await (await this.#refused).append(Buffer.from(`${JSON.stringify(line)}\n`));
  }

  async #openRefused(): Promise<AppendFile> {
    try {
      return (await AppendFile.openLines(join(this.folder, REFUSED))).file;
    } catch (error) {
      this.#refused = null;
      throw error;
    }
  }

  /** @param keep false removes what was written here, and the folder when nothing of anybody else's lies in it */
  async close(keep: boolean): Promise<void> {
    await (await this.#refused)?.close();
    try {
      // By name: `--state` may have named a folder that holds more than this replay. The state goes last: as long as
      // anything is there, it says that all of it was done.
      for (const name of keep ? [] : [UNITS, REFUSED, PLAN, STATE])
        await rm(join(this.folder, name), { force: true });
    } finally {
      this.#own.release();
    }
    if (!keep) await rmdir(this.folder).catch(() => undefined);
  }
}

/** Neither is without its plan, unless all of it was done: they are not ours to remove. */
function refuseStrangers(folder: string): void {
  const stranger = [STATE, REFUSED].find((name) => existsSync(join(folder, name)));
  if (stranger === undefined) return;
  const path = join(folder, stranger);
  throw new FolderRefused('not_ours', `${path} exists, but is not from a replay; name another folder`);
}

/** Lists what is to be replayed. The plan comes last, and goes first: with it, all of it is there. */
async function begin(folder: string, { fingerprint, id, list }: CheckpointOptions): Promise<Plan> {
  for (const name of [PLAN, REFUSED, STATE]) await rm(join(folder, name), { force: true });
  let units = 0;
  let bytes = 0;
  await fillNew(NewFile.create(join(folder, UNITS)), async (file) => {
    let text = '';
    for await (const unit of list()) {
      text += `${JSON.stringify(unit)}\n`;
      units += 1;
      if (unit.kind === 'file') bytes += unit.bytes;
      if (text.length < WRITE_AT_ONCE) continue;
      await file.write(Buffer.from(text));
      text = '';
    }
    await file.write(Buffer.from(text));
  });
  const plan: Plan = { id, fingerprint, units, bytes };
  await writeState(folder, PLAN, plan);
  return plan;
}
