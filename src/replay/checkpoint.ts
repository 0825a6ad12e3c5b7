import { createReadStream, existsSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { folderError, MillraceError } from '../core/errors.ts';
import { AppendFile } from '../lib/append-file.ts';
import { cutLines } from '../lib/lines.ts';
import { FolderRefused } from '../lib/folder-refused.ts';
import { fillNew, NewFile } from '../lib/new-file.ts';
import { isRecord, jsonIn } from '../lib/parsed.ts';
import { continuesRun, readState, WorkFolder, writeState } from '../lib/work-folder.ts';
import type { Counts } from './counts.ts';
import type { Position } from './tracker.ts';
import type { Unit } from './unit.ts';

const PLAN = 'plan.json';
const UNITS = 'units.ndjson';
const STATE = 'state.json';
const REFUSED = 'refused.ndjson';
const WRITE_AT_ONCE_BYTES = 64 * 1024;

/** Written once, when a replay starts. */
interface Plan {
  readonly id: string;
  /** The same for the same command. */
  readonly fingerprint: string;
  readonly units: number;
  /** Of all files. */
  readonly bytes: number;
}

/** Progress, written again and again. */
interface State {
  readonly place: Position;
  readonly counts: Counts;
  readonly done: boolean;
}

export interface CheckpointOptions {
  readonly fingerprint: string;
  /** The id of a new replay. */
  readonly id: string;
  /** Whether to continue an earlier run. */
  readonly resume: boolean;
  readonly list: () => AsyncIterable<Unit>;
}

/**
 * The state folder of a replay; each change is durable when its method resolves. `plan.json` says what is replayed,
 * `units.ndjson` lists the files of when it started, `state.json` has the progress that every sink has reached, and
 * `refused.ndjson` the events that a sink has refused, without their bodies.
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
   * @throws MillraceError usage when there is nothing to resume, or without `resume` when the folder has an unfinished
   *   replay or other files of its names; folder_in_use, folder_unwritable
   */
  static async open(folder: string, options: CheckpointOptions): Promise<Checkpoint> {
    let own: WorkFolder | null = null;
    try {
      own = await WorkFolder.take(folder, 0o700);
      const plan = readState(folder, PLAN) as Plan | null;
      const state = readState(folder, STATE) as State | null;
      const { resume, fingerprint } = options;
      // A kill during the listing: nothing was sent yet.
      const isListing = state === null && existsSync(join(folder, UNITS));
      if (resume && plan === null && !isListing)
        throw new FolderRefused(
          'not_ours',
          `there is nothing to resume in ${folder}: nothing was begun, or it is finished and no longer remembered`,
        );
      const isOver = state?.done === true && !resume;
      const otherwise = '--resume needs the same inputs, filters and targets';
      const run = { kind: 'replay', fingerprint, resume, otherwise };
      if (plan !== null && continuesRun(folder, isOver ? null : plan.fingerprint, run))
        return new Checkpoint(own, plan, state);
      if (plan === null && !isOver) refuseForeignFiles(folder);
      return new Checkpoint(own, await begin(folder, options), null);
    } catch (error) {
      own?.release();
      // An error of the listing is not about this folder.
      throw own === null || error instanceof FolderRefused ? folderError(folder, error) : error;
    }
  }

  /** Whether the folder has the state of a replay. */
  static isIn(folder: string): boolean {
    return existsSync(join(folder, PLAN));
  }

  /**
   * The units from index `first` on; none of a replay that was done and is being removed.
   * @throws MillraceError file_unusable when the list is damaged, or has fewer than the plan says
   */
  async *units(first: number): AsyncGenerator<Unit> {
    if (this.before?.done === true) return;
    const path = join(this.folder, UNITS);
    const { units } = this.plan;
    let listed = 0;
    const chunks = existsSync(path) ? createReadStream(path) : Readable.from([]);
    for await (const lines of cutLines(chunks as AsyncIterable<Buffer>))
      for (const { number, bytes, ended } of lines) {
        const unit = ended && bytes !== null ? jsonIn(bytes.toString()) : null;
        if (!isRecord(unit)) continue;
        listed += 1;
        if (number > first) yield unit as unknown as Unit;
      }
    if (listed !== units)
      throw new MillraceError(
        'file_unusable',
        `${path} has ${listed} of ${units} inputs: what is missing was not replayed. Remove ${this.folder} to start over`,
      );
  }

  async save(state: State): Promise<void> {
    await writeState(this.folder, STATE, state);
  }

  /** Notes a refused event, durable once it resolves. */
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

  /** @param keep false removes the files of the replay, and the folder when it is empty then */
  async close(keep: boolean): Promise<void> {
    await (await this.#refused)?.close();
    try {
      // `--state` may name a folder with other files. The state is removed last: while any file is there, it says
      // that all was done.
      for (const name of keep ? [] : [UNITS, REFUSED, PLAN, STATE])
        await rm(join(this.folder, name), { force: true });
    } finally {
      this.#own.release();
    }
    if (!keep) await rmdir(this.folder).catch(() => undefined);
  }
}

/** A state or a list of refused events without a plan is not from a replay. */
function refuseForeignFiles(folder: string): void {
  const foreign = [STATE, REFUSED].find((name) => existsSync(join(folder, name)));
  if (foreign === undefined) return;
  const path = join(folder, foreign);
  throw new FolderRefused('not_ours', `${path} exists, but is not from a replay; name another folder`);
}

/** Lists the units. The plan is written last, and removed first: it says that the list is complete. */
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
      if (text.length < WRITE_AT_ONCE_BYTES) continue;
      await file.write(Buffer.from(text));
      text = '';
    }
    await file.write(Buffer.from(text));
  });
  const plan: Plan = { id, fingerprint, units, bytes };
  await writeState(folder, PLAN, plan);
  return plan;
}
