import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { folderError, MillraceError } from '../../core/errors.ts';
import { namesIn } from '../../lib/durable.ts';
import { continuesRun, readState, removeRun, writeState } from '../../lib/work-folder.ts';
import { isSegment, Segments } from './segments.ts';
import { partsOf, planId, type BackfillPlan } from './plan.ts';

/** The trigger of one provider. */
export interface Triggered {
  /** Written before the trigger is sent, so that its bulk op is recognised after a crash. */
  readonly before: OpsBefore;
  /** Marks of pulls that had ended before it (`endedPulls`), by user. */
  readonly ended: Readonly<Record<string, string>>;
  readonly outcome: 'intended' | 'accepted' | 'completed';
}

/** Bulk ops before a trigger. They have no id: ours is the first that is not among these. */
export interface OpsBefore {
  /** Start of the newest of all, as the service wrote it; null when there was none. */
  readonly since: string | null;
  /** Number of bulk ops of our type and provider that began at that time. */
  readonly known: number;
}

/** Why no rows are fetched for a connection. */
export interface Without {
  readonly status: 'failed' | 'not_connected' | 'not_pulled';
  readonly reason: string;
}

/** A pull that failed or was not made: of one resource, or of all of a connection, `user provider`. */
export type Unpulled = Without & ReturnType<typeof partsOf>;

interface State {
  readonly plan: BackfillPlan;
  /** `_loaded_at` of every row, the same after the run is resumed. */
  readonly loadedAt: string;
  /** Folder of the segments, another one for each run. */
  readonly run: string;
  /** True when the run began with `trigger`; resuming it needs no `trigger`. */
  readonly triggers: boolean;
  /** True when rows that are in the files are replaced even by fewer. */
  readonly replaces: boolean;
  /** Number of segments that may have rows. */
  readonly segments: number;
  readonly triggered: Readonly<Record<string, Triggered>>;
  /** By `user provider`, or by `user provider resource`. */
  readonly without: Readonly<Record<string, Without>>;
  /** Connections that are pulled again, by `user provider`; all when absent. */
  readonly again?: readonly string[];
  /** True once the service has said who is connected. */
  readonly checked: boolean;
  /** True once the pulls have ended. */
  readonly followed: boolean;
  /** True when the files are complete, except for users who failed: these can be fetched again, or another run can begin. */
  readonly written?: boolean;
}

const BEGAN_WITHOUT =
  'the run in --out began without --trigger, and what it has fetched would not be fetched again after the pull; ' +
  'leave out --trigger to resume it, or use another --out';

/** In the output folder. */
export const FOLDER = '_backfill';
export const STATE = 'state.json';

/** The state of a backfill, in `_backfill` in its output folder. Every change is durable once its method resolves. */
export class Checkpoint {
  readonly folder: string;
  #state: State;

  private constructor(folder: string, state: State) {
    this.folder = folder;
    this.#state = state;
  }

  /**
   * @param output a folder that this process has locked
   * @param resume true to continue the run that is there; otherwise there must be none that is unfinished
   * @param loadedAt for a new run
   * @param triggers true when the service pulls first; a run that is resumed keeps it, as it keeps `replaces`
   * @throws MillraceError usage when the folder belongs to another plan, to an unfinished run while `resume` is false, or to a run
   *   without `triggers`: what that has fetched is from before the pull; or when rows are there without their state, unless a new run
   *   `replaces` them
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
      const left = replaces && !resume && isLost(folder) ? null : leftIn(output);
      const before = left?.written === true && !resume ? null : left;
      continuesRun(folder, before === null ? null : planId(before.plan), {
        kind: 'backfill',
        fingerprint: planId(plan),
        resume,
        otherwise: '--resume needs the same users, providers and dates',
      });
      if (triggers && before?.triggers === false) throw new MillraceError('usage', BEGAN_WITHOUT);
      // Left by a run that was killed before its first state, or while it removed the folder; or not wanted any more.
      if (before === null) await removeRun(folder, STATE);
      const state = before === null ? newState(plan, loadedAt) : resumable(folder, before);
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

  /**
   * The plan of the run that can be resumed, or null.
   * @throws MillraceError usage for a run that an earlier version began, or whose state is gone
   */
  static planOf(output: string): BackfillPlan | null {
    const left = leftIn(output);
    return left === null ? null : resumable(join(output, FOLDER), left).plan;
  }

  /** Removes what the run has fetched for erased users, and then their ids from its state. @param without makes that state */
  static async forget(
    output: string,
    isErased: (user: string) => boolean,
    without: (state: State) => object,
  ): Promise<void> {
    const left = leftIn(output);
    if (left === null) return;
    const folder = join(output, FOLDER);
    await Segments.forget(join(folder, left.run), left.segments, isErased);
    await writeState(folder, STATE, without(left));
  }

  /** True when there is a run whose files are not complete. */
  static isUnfinished(output: string): boolean {
    if (isLost(join(output, FOLDER))) return true;
    const left = leftIn(output);
    return left !== null && left.written !== true;
  }

  get state(): State {
    return this.#state;
  }

  /** Pulls that failed or were not made; a resumed run makes them again. */
  get unpulled(): readonly Unpulled[] {
    return unpulledIn(this.#state);
  }

  /** Notes a trigger; with null the next run sends it again. */
  triggered(provider: string, triggered: Triggered | null): Promise<void> {
    const { [provider]: _, ...others } = this.#state.triggered;
    return this.#change({ triggered: triggered === null ? others : { ...others, [provider]: triggered } });
  }

  /** Notes the connections that do not exist (`checked`), or whose pulls brought nothing (`followed`). */
  noteWithout(without: Readonly<Record<string, Without>>, step: 'checked' | 'followed'): Promise<void> {
    return this.#change({ without: { ...this.#state.without, ...without }, [step]: true });
  }

  noteSegments(segments: number): Promise<void> {
    return this.#change({ segments });
  }

  /** The files are complete. Keeps the state when users have failed, so that they can be fetched again. */
  async finish(hasFailed: boolean): Promise<void> {
    if (hasFailed) return this.#change({ written: true });
    await removeRun(this.folder, STATE);
  }

  /** Folder of the segments. */
  get runFolder(): string {
    return join(this.folder, this.#state.run);
  }

  async #change(part: Partial<State>): Promise<void> {
    this.#state = { ...this.#state, ...part };
    await writeState(this.folder, STATE, this.#state);
  }
}

function newState(plan: BackfillPlan, loadedAt: string): State {
  const run = randomBytes(6).toString('hex');
  const nothing = { triggered: {}, without: {}, checked: false, followed: false };
  return { plan, loadedAt, run, triggers: false, replaces: false, segments: 0, ...nothing };
}

/** The state of another try for users who failed. */
function againFrom(state: State): State {
  const again = [...new Set(unpulledIn(state).map(({ connection }) => connection))];
  const stay = Object.entries(state.without).filter(([, { status }]) => status === 'not_connected');
  // Only pulls that failed or were not made are made again.
  const pulls = again.length === 0 ? {} : { again, triggered: {}, checked: false, followed: false };
  return { ...state, ...pulls, without: Object.fromEntries(stay), written: false };
}

function unpulledIn({ without }: State): Unpulled[] {
  return Object.entries(without)
    .filter(([, { status }]) => status !== 'not_connected')
    .map(([key, why]) => ({ ...partsOf(key), ...why }));
}

/** @throws MillraceError usage when the state is gone, or cannot be read */
function leftIn(output: string): State | null {
  const folder = join(output, FOLDER);
  if (isLost(folder)) {
    const what = `${join(folder, STATE)} is not there, and rows that were fetched are`;
    const how = 'put it back, or start over with --replace and without --resume, or with another --out';
    throw new MillraceError('usage', `${what}: ${how}`);
  }
  try {
    return readState(folder, STATE) as State | null;
  } catch (error) {
    throw folderError(folder, error);
  }
}

/** True for segments without their state: the first state is written before them, and the last removed after them. */
function isLost(folder: string): boolean {
  try {
    if (existsSync(join(folder, STATE))) return false;
    return namesIn(folder).some((run) => namesIn(join(folder, run)).some(isSegment));
  } catch (error) {
    throw folderError(folder, error);
  }
}

/** @throws MillraceError usage for a run of an earlier version, which kept each task in a folder */
function resumable(folder: string, left: State): State {
  // The newest member.
  if ((left as Partial<State>).segments !== undefined) return left;
  const how = `resume it with the version that began it, or remove ${folder} to start over`;
  throw new MillraceError('usage', `${join(folder, STATE)} is of another format: ${how}`);
}
