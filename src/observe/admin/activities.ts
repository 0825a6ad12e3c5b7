import type { Router } from 'express';
import { activitySchema, type Activity } from '../../core/operations.ts';
import type { Clock } from '../../core/clock.ts';
import { answering, parseAs } from './problem.ts';

/** Milliseconds without an update after which a command counts as interrupted. */
const SILENT_MS = 15_000;
/** Milliseconds for which a finished command is shown. */
const SHOWN_MS = 3_600_000;
const MOST = 50;

/** Progress of commands that run beside the receiver, in memory, for the console. */
export class ActivityBoard {
  readonly #clock: Clock;
  readonly #noted = new Map<string, Activity>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(activity: Activity): void {
    const key = `${activity.kind} ${activity.id}`;
    this.#noted.delete(key);
    this.#noted.set(key, { ...activity, updatedAt: this.#clock.now() });
    for (const oldest of this.#noted.keys()) {
      if (this.#noted.size <= MOST) break;
      this.#noted.delete(oldest);
    }
  }

  /** Newest update first. */
  list(): readonly Activity[] {
    const now = this.#clock.now();
    return [...this.#noted.values()]
      .filter(({ updatedAt }) => now - updatedAt < SHOWN_MS)
      .map((activity): Activity => {
        const isGone = activity.state === 'running' && now - activity.updatedAt > SILENT_MS;
        return isGone ? { ...activity, state: 'interrupted' } : activity;
      })
      .toReversed();
  }
}

/** Lists activities; `POST` updates one. */
export function activityApi(board: ActivityBoard): Router {
  return answering({
    'GET /': () => board.list(),
    'POST /': ({ body }) => {
      board.note(parseAs(activitySchema, body));
      return { noted: true };
    },
  });
}
