import type { Router } from 'express';
import { activitySchema, type Activity } from '../../core/operations.ts';
import type { Clock } from '../../core/clock.ts';
import { answering, bodyOf } from './problem.ts';

/** Milliseconds without a word after which a command is taken to have ended without one. */
const SILENT = 15_000;
/** How long what is over is still shown. */
const SHOWN = 3_600_000;
const KEPT = 50;

/** What commands that run beside the receiver say of their work: replays and backfills. Held in memory, for the console. */
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
      if (this.#noted.size <= KEPT) break;
      this.#noted.delete(oldest);
    }
  }

  /** Newest word first. */
  list(): readonly Activity[] {
    const now = this.#clock.now();
    return [...this.#noted.values()]
      .filter(({ updatedAt }) => now - updatedAt < SHOWN)
      .map((activity): Activity => {
        const isGone = activity.state === 'running' && now - activity.updatedAt > SILENT;
        return isGone ? { ...activity, state: 'interrupted' } : activity;
      })
      .toReversed();
  }
}

/** `POST` takes one activity in its newest state. */
export function activityApi(board: ActivityBoard): Router {
  return answering({
    'GET /': () => board.list(),
    'POST /': (request) => {
      board.note(bodyOf(activitySchema, request));
      return { noted: true };
    },
  });
}
