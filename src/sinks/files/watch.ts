import type { Clock } from '../../core/clock.ts';
import type { ArchiveFolder } from './open-folder.ts';
import type { Lanes } from './lanes.ts';
import type { Target } from './archive.ts';
import { explain, type FolderTroubles } from './troubles.ts';

/** Milliseconds between two looks at what nobody may be writing to. */
const EVERY = 2000;
const UNUSABLE = 'folder_unusable';

export interface WatchOptions {
  readonly clock: Clock;
  readonly folder: ArchiveFolder;
  readonly lanes: Lanes;
  readonly troubles: FolderTroubles;
  readonly target: Target;
  /** Makes the archive's folder again. */
  readonly remake: () => Promise<void>;
  /** The folder can be written again. */
  readonly onUsable: () => void;
}

/** Looks at the folder and at the open parts now and then: one that is written by nobody would be missed by nobody. */
export class Watch {
  readonly #options: WatchOptions;
  #stopped = false;
  #cancel: () => void = () => undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#cancel = this.#options.clock.after(EVERY, () => {
      this.#looking = this.#look().finally(() => {
        if (!this.#stopped) this.start();
      });
    });
  }

  /** For good. Settles when the look that has begun is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#looking;
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { folder, lanes, target, troubles, remake, onUsable } = this.#options;
    try {
      if (!(await folder.isThere())) await remake();
      await folder.probe();
      if (troubles.over(UNUSABLE)) onUsable();
    } catch (error) {
      troubles.lasts(UNUSABLE, `${folder.path} cannot be written: ${explain(error)}`);
    }
    await lanes.each(async (lane) => {
      const { part } = lane;
      if (part !== null && !(await part.isThere().catch(() => true))) await lanes.drop(lane, part);
    });
    await target.look();
  }
}
