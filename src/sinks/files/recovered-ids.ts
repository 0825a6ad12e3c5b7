import { hash } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { Event } from '../../core/event.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { destinationLevelOf } from './partition.ts';
import type { Part } from './part.ts';

interface Remembered {
  readonly ids: Map<string, Part>;
  /** Parts taken up again and not finished since. */
  readonly resumed: Set<Part>;
  /** When the last of them was finished, or the first new one if there was none: milliseconds since the epoch. */
  finishedAt: number | null;
}

/** Of an event, what tells it from others. */
export type Identified = Pick<Event, 'id' | 'source' | 'type' | 'user' | 'body'>;

/**
 * Ids from a source are unique within one user and one event type only. One that comes with other bytes is another event: it was quarantined,
 * and a person may have put it back.
 */
export function identityOf({ id, source, type, user, body }: Identified): string {
  return JSON.stringify([id, source, type, user, hash('sha256', body, 'base64')]);
}

/**
 * The identities of what is in the parts a crash left behind, for each destination. After a crash the dispatcher sends again what it had
 * not noted as delivered; what is in a recovered part is on disk already. The ids of a destination are forgotten with the first event for it
 * that was accepted after every part taken up again, or the first new one if there was none, had been finished: what is sent again comes before it. That
 * they are finished does not suffice: an erasure or a flush finishes them before anything is sent.
 */
export class RecoveredIds {
  readonly #clock: Clock;
  readonly #destinations = new Map<string, Remembered>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param ids as `identityOf` says them */
  add(part: Part, ids: readonly string[], resumed: boolean): void {
    const level = destinationLevelOf(part.place.folder);
    const known = getOrMake(this.#destinations, level, nothing);
    for (const id of ids) known.ids.set(id, part);
    if (resumed) known.resumed.add(part);
    known.finishedAt = null;
  }

  get size(): number {
    return this.#destinations.size;
  }

  /** @param level the destination's folder level, empty for the default place */
  partOf(level: string, event: Event): Part | null {
    const known = this.#destinations.get(level);
    const part = known?.ids.get(identityOf(event)) ?? null;
    const finishedAt = known?.finishedAt ?? null;
    if (part === null && finishedAt !== null && event.receivedAt > finishedAt)
      this.#destinations.delete(level);
    return part;
  }

  /** To be told of each part finished, but for those whose finishing a crash had interrupted. */
  finished(part: Part): void {
    const known = this.#destinations.get(destinationLevelOf(part.place.folder));
    known?.resumed.delete(part);
    if (known?.resumed.size === 0) known.finishedAt ??= this.#clock.now();
  }
}

function nothing(): Remembered {
  return { ids: new Map(), resumed: new Set(), finishedAt: null };
}
