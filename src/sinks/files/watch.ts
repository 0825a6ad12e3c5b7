import type { Clock } from '../../core/clock.ts';
import type { Lanes } from './lanes.ts';
import type { OpenFolder } from './writer-folders.ts';
import type { PartAnswers } from './part-answers.ts';
import { explain, type FolderTroubles } from './troubles.ts';

/** Milliseconds between two checks. */
const EVERY = 2000;
const UNUSABLE = 'folder_unusable';

export interface WatchOptions {
  readonly clock: Clock;
  readonly folder: OpenFolder;
  readonly lanes: Lanes;
  readonly troubles: FolderTroubles;
  readonly answers: PartAnswers;
  /** Makes the folder again. */
  readonly remake: () => Promise<void>;
  /** The folder can be written again. */
  readonly onUsable: () => void;
}

/** Checks the folder and the open parts every 2 s; nothing else notices that an idle one was deleted. */
export class Watch {
  readonly #options: WatchOptions;
  #isStopped = false;
  #cancel: () => void = () => undefined;
  #checking: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#cancel = this.#options.clock.after(EVERY, () => {
      this.#checking = this.#check().finally(() => {
        if (!this.#isStopped) this.start();
      });
    });
  }

  /** Settles when the check that has begun is done; there is no other afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    await this.#checking;
  }

  /** Never rejects. */
  async #check(): Promise<void> {
    const { folder, lanes, answers, troubles, remake, onUsable } = this.#options;
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
    await answers.retry();
  }
}
