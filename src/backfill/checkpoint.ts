import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import { errorCode, writeDurably } from '../lib/durable.ts';
import { planId, type BackfillPlan } from './plan.ts';

/** What is known of the trigger of one provider. */
export interface Triggered {
  /** Wall clock, milliseconds: written before the trigger is sent, so that its bulk op is known again after a crash. */
  readonly at: number;
  readonly outcome: 'intended' | 'accepted' | 'completed';
}

interface State {
  readonly plan: BackfillPlan;
  readonly triggered: Readonly<Record<string, Triggered>>;
  /** Users whose pull failed for good, by `user provider`, with the service's reason. */
  readonly failed: Readonly<Record<string, string>>;
  /** True once the pulls have been followed to their end. */
  readonly followed: boolean;
}

const FOLDER = '_backfill';
const STATE = 'state.json';

/**
 * How far a backfill has come, in `_backfill` inside its output folder. Every change is on disk, under the file's own
 * name, before the method resolves. Removed when the files are complete.
 */
export class Checkpoint {
  readonly folder: string;
  #state: State;

  private constructor(folder: string, state: State) {
    this.folder = folder;
    this.#state = state;
  }

  /**
   * @param resume continue what is there; else there must be nothing
   * @throws MillraceError usage when the folder belongs to another plan, or to an unfinished run and `resume` is false
   */
  static async open(output: string, plan: BackfillPlan, resume: boolean): Promise<Checkpoint> {
    const folder = join(output, FOLDER);
    const before = await readState(folder);
    if (before !== null && !resume) {
      throw new MillraceError(
        'usage',
        `${folder} holds an unfinished backfill: add --resume, or remove the folder`,
      );
    }
    if (before !== null && planId(before.plan) !== planId(plan)) {
      throw new MillraceError(
        'usage',
        `${folder} belongs to other users, providers or dates; --resume needs the same`,
      );
    }
    try {
      await mkdir(join(folder, 'tasks'), { recursive: true });
    } catch (error) {
      throw new MillraceError('folder_unwritable', `${folder}: ${messageOf(error)}`, { cause: error });
    }
    const checkpoint = new Checkpoint(folder, before ?? { plan, triggered: {}, failed: {}, followed: false });
    await checkpoint.#save();
    return checkpoint;
  }

  /** The plan of an unfinished run, for a `--resume` that does not repeat it. */
  static async planOf(output: string): Promise<BackfillPlan | null> {
    return (await readState(join(output, FOLDER)))?.plan ?? null;
  }

  get state(): State {
    return this.#state;
  }

  async triggered(provider: string, triggered: Triggered): Promise<void> {
    this.#state = { ...this.#state, triggered: { ...this.#state.triggered, [provider]: triggered } };
    await this.#save();
  }

  async followed(failed: Readonly<Record<string, string>>): Promise<void> {
    this.#state = { ...this.#state, failed, followed: true };
    await this.#save();
  }

  /** Where the rows of one task go; a hundred tasks to a folder, so that no folder grows without bounds. */
  taskFolder(index: number): string {
    return join(this.folder, 'tasks', String(Math.floor(index / 100)), String(index));
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  async #save(): Promise<void> {
    await writeDurably(this.folder, STATE, `${JSON.stringify(this.#state)}\n`);
  }
}

async function readState(folder: string): Promise<State | null> {
  try {
    return JSON.parse(await readFile(join(folder, STATE), 'utf8')) as State;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw new MillraceError('usage', `${join(folder, STATE)}: ${messageOf(error)}`, { cause: error });
  }
}
