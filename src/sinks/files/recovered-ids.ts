import { hash } from 'node:crypto';
import type { Event } from '../../core/event.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { destinationLevelOf } from './partition.ts';
import type { Part } from './part.ts';

interface Remembered {
  readonly ids: Map<string, Part>;
  /** Parts taken up again and not finished since. */
  readonly resumed: Set<Part>;
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
 * not noted as delivered; what is in a recovered part is on disk already. The ids of a destination are forgotten once
 * every part taken up again, or the first new one if there was none, has been finished: by then those are long sent.
 */
export class RecoveredIds {
  readonly #destinations = new Map<string, Remembered>();

  /** @param ids as `identityOf` says them */
  add(part: Part, ids: readonly string[], resumed: boolean): void {
    const level = destinationLevelOf(part.place.folder);
    const known = getOrMake(this.#destinations, level, () => ({ ids: new Map(), resumed: new Set() }));
    for (const id of ids) known.ids.set(id, part);
    if (resumed) known.resumed.add(part);
  }

  get size(): number {
    return this.#destinations.size;
  }

  /** @param level the destination's folder level, empty for the default place */
  partOf(level: string, event: Event): Part | null {
    return this.#destinations.get(level)?.ids.get(identityOf(event)) ?? null;
  }

  /** To be told of each part finished, but for those whose finishing a crash had interrupted. */
  finished(part: Part): void {
    const level = destinationLevelOf(part.place.folder);
    const known = this.#destinations.get(level);
    known?.resumed.delete(part);
    if (known?.resumed.size === 0) this.#destinations.delete(level);
  }
}
