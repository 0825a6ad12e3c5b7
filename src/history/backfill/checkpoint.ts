import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { folderError, MillraceError } from '../../core/errors.ts';
import { errorCode, syncFolder } from '../../lib/durable.ts';
import { FolderRefused } from '../../lib/folder-refused.ts';
import { goesOn, readState, writeState } from '../../lib/work-folder.ts';
import { planId, tasksOf, type BackfillPlan } from './plan.ts';

/** What is known of the trigger of one provider. */
export interface Triggered {
  /** What was there just before it: written before the trigger is sent, so that its bulk op is known again after a crash. */
  readonly before: OpsBefore;
  /** Pulls that had ended before it, as `endedPulls` marks them, by user. */
  readonly ended: Readonly<Record<string, string>>;
  readonly outcome: 'intended' | 'accepted' | 'completed';
}

/** Bulk ops have no id: ours is the first that is not among these. */
export interface OpsBefore {
  /** When the newest of all began, as the service wrote it; null when there was none. */
  readonly since: string | null;
  /** Bulk ops of our type and provider that began at that time. */
  readonly known: number;
}

/** Why no rows are fetched for a user with a provider: the pull failed, there is no connection, or nothing was pulled. */
export interface Without {
  readonly status: 'failed' | 'not_connected' | 'not_pulled';
  readonly reason: string;
}

interface State {
  readonly plan: BackfillPlan;
  /** `_loaded_at` of every row: those of a run that is resumed have one time. */
  readonly loadedAt: string;
  /** Folder of the tasks: one of each run, so that no task of another plan is ever taken for one of this. */
  readonly run: string;
  /** Whether the run began with `trigger`, which one that resumes it does not say again. */
  readonly triggers: boolean;
  /** Whether rows that are in the files count for nothing. */
  readonly replaces: boolean;
  readonly triggered: Readonly<Record<string, Triggered>>;
  /** By `user provider`. */
  readonly without: Readonly<Record<string, Without>>;
  /** Connections whose pulls failed, by `user provider`: they are pulled again, and no others. All, where it is absent. */
  readonly again?: readonly string[];
  /** True once the service has said who is connected. */
  readonly checked: boolean;
  /** True once the pulls have been followed to their end. */
  readonly followed: boolean;
  /** The files are complete, without those for whom it failed: they can be asked for again, and another run can begin. */
  readonly written?: boolean;
}

const BEGAN_WITHOUT =
  'the run in --out began without --trigger, and what it has fetched would not be fetched again after the pull; ' +
  'leave out --trigger to resume it, or use another --out';

/** In the output folder. */
export const FOLDER = '_backfill';
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
   * @param output a folder that nobody else writes meanwhile
   * @param resume continue what is there; else there must be nothing that is not written
   * @param loadedAt of a run that begins
   * @param triggers whether the service is to pull first; a run that was begun so is resumed so, as with `replaces`
   * @throws MillraceError usage when the folder belongs to another plan, to an unfinished run and `resume` is false, or to
   *   one that began without `triggers`: what it has fetched is from before the pull
   */
  static async open(
    output: string,
    plan: BackfillPlan,
    {
      resume,
      loadedAt,
      triggers,
      replaces = false,
    }: Pick<State, 'loadedAt' | 'triggers'> & { resume: boolean; replaces?: boolean },
  ): Promise<Checkpoint> {
    const folder = join(output, FOLDER);
    try {
      const left = leftIn(output);
      const before = left?.written === true && !resume ? null : left;
      goesOn(folder, before === null ? null : planId(before.plan), {
        kind: 'backfill',
        fingerprint: planId(plan),
        resume,
        otherwise: '--resume needs the same users, providers and dates',
      });
      if (triggers && before?.triggers === false) throw new MillraceError('usage', BEGAN_WITHOUT);
      // Without a state, what lies there is of a run that was ended while it removed it.
      if (before === null) await rm(folder, { recursive: true, force: true });
      const state = { ...newState(plan, loadedAt), ...before };
      const checkpoint = new Checkpoint(folder, state.written === true ? againFrom(state) : state);
      await mkdir(checkpoint.runFolder, { recursive: true });
      await checkpoint.#change({
        triggers: triggers || state.triggers,
        replaces: replaces || state.replaces,
      });
      return checkpoint;
    } catch (error) {
      throw folderError(folder, error);
    }
  }

  /** The plan of a run with something left to do, for a `--resume` that does not repeat it. */
  static planOf(output: string): BackfillPlan | null {
    return leftIn(output)?.plan ?? null;
  }

  /**
   * Removes what the run that is left has fetched for erased users, for good, and then its state's mention of them.
   * @param without the state as it is without them
   */
  static async forget(
    output: string,
    isErased: (user: string) => boolean,
    without: (state: State) => object,
  ): Promise<void> {
    const left = leftIn(output);
    if (left === null) return;
    const folder = join(output, FOLDER);
    for (const { index, user } of tasksOf(left.plan)) {
      if (!isErased(user)) continue;
      const path = taskFolderOf(join(folder, left.run), index);
      await rm(path, { recursive: true, force: true });
      await syncFolder(dirname(path)).catch((error: unknown) => {
        if (errorCode(error) !== 'ENOENT') throw error;
      });
    }
    await writeState(folder, STATE, without(left));
  }

  /** Whether there is a run whose files are not complete. */
  static isUnfinished(output: string): boolean {
    const left = leftIn(output);
    return left !== null && left.written !== true;
  }

  get state(): State {
    return this.#state;
  }

  /** The connections whose pulls failed or were not made, and why. */
  get withoutPull(): readonly (readonly [connection: string, why: Without])[] {
    return withoutPull(this.#state);
  }

  /** Notes a trigger; null forgets it, so that the next run sends it again. */
  triggered(provider: string, triggered: Triggered | null): Promise<void> {
    const { [provider]: _, ...others } = this.#state.triggered;
    return this.#change({ triggered: triggered === null ? others : { ...others, [provider]: triggered } });
  }

  /** Notes who is not connected (`checked`), or whose pulls brought nothing (`followed`). */
  noteWithout(without: Readonly<Record<string, Without>>, step: 'checked' | 'followed'): Promise<void> {
    return this.#change({ without: { ...this.#state.without, ...without }, [step]: true });
  }

  /** The files are complete. What the next try of those who failed goes on from stays, if any did. */
  async finish(hasFailed: boolean): Promise<void> {
    if (hasFailed) return this.#change({ written: true });
    // The state goes first, durably: from then on nothing is left to resume, and what else is left is nobody's.
    await rm(join(this.folder, STATE), { force: true });
    await syncFolder(this.folder);
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Folder of all tasks of the run. */
  get runFolder(): string {
    return join(this.folder, this.#state.run);
  }

  /** Where the rows of one task go. */
  taskFolder(index: number): string {
    return taskFolderOf(this.runFolder, index);
  }

  async #change(part: Partial<State>): Promise<void> {
    this.#state = { ...this.#state, ...part };
    await writeState(this.folder, STATE, this.#state);
  }
}

/** A hundred tasks to a folder, so that no folder grows without bounds. */
function taskFolderOf(runFolder: string, index: number): string {
  return join(runFolder, String(Math.floor(index / 100)), String(index));
}

function newState(plan: BackfillPlan, loadedAt: string): State {
  const run = randomBytes(6).toString('hex');
  const nothing = { triggered: {}, without: {}, checked: false, followed: false };
  return { plan, loadedAt, run, triggers: false, replaces: false, ...nothing };
}

/** For another try of those who failed: what the service has to say of them may be another thing now. */
function againFrom(state: State): State {
  const again = withoutPull(state).map(([connection]) => connection);
  const stay = Object.entries(state.without).filter(([, { status }]) => status === 'not_connected');
  // Those whose pulls are there are not pulled again.
  const pulls = again.length === 0 ? {} : { again, triggered: {}, checked: false, followed: false };
  return { ...state, ...pulls, without: Object.fromEntries(stay), written: false };
}

function withoutPull({ without }: State): [connection: string, why: Without][] {
  return Object.entries(without).filter(([, { status }]) => status !== 'not_connected');
}

function leftIn(output: string): State | null {
  const folder = join(output, FOLDER);
  try {
    const state = readState(folder, STATE) as Partial<State> | null;
    // The member that was added last.
    if (state !== null && state.replaces === undefined)
      throw new FolderRefused(
        'not_ours',
        `${join(folder, STATE)} is of another format: remove ${folder} to start over`,
      );
    return state as State | null;
  } catch (error) {
    throw folderError(folder, error);
  }
}
