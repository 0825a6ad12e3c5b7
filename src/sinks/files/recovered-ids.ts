import { hash } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { Event } from '../../core/event.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { destinationLevelOf } from './partition.ts';
import type { Part } from './part.ts';

/** The events of one destination that a crash left in parts. */
interface DestinationIds {
  readonly ids: Map<string, Part>;
  /** Continued parts that are not finished yet. */
  readonly continued: Set<Part>;
  /** When the last of them was finished, or the first new part if there was none: milliseconds since the epoch. */
  finishedAt: number | null;
}

/** The members of an event that tell it from others. */
export type Identified = Pick<Event, 'id' | 'source' | 'type' | 'user' | 'body'>;

/**
 * Ids from a source are unique within one user and one event type only. The same id with other bytes is another event: it was
 * quarantined, and a person may have restored it.
 */
export function identityOf({ id, source, type, user, body }: Identified): string {
  return JSON.stringify([id, source, type, user, hash('sha256', body, 'base64')]);
}

/**
 * Recognises events that a crash left in parts, when the dispatcher sends them again because they were not noted as delivered.
 *
 * The ids of a destination are forgotten with the first event that was accepted after `finishedAt`: events that are sent again come
 * before it. Finished parts alone are no reason: an erasure or a flush finishes them before anything is sent.
 */
export class RecoveredIds {
  readonly #clock: Clock;
  readonly #destinations = new Map<string, DestinationIds>();
  /** Parts that a crash left and that are not continued. */
  readonly #others = new WeakSet<Part>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param ids by `identityOf` */
  add(part: Part, ids: readonly string[], isContinued: boolean): void {
    const level = destinationLevelOf(part.name.folder);
    const known = getOrMake(this.#destinations, level, () => ({
      ids: new Map<string, Part>(),
      continued: new Set<Part>(),
      finishedAt: null,
    }));
    for (const id of ids) known.ids.set(id, part);
    if (isContinued) known.continued.add(part);
    else this.#others.add(part);
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

  /** Called for each finished part. */
  finished(part: Part): void {
    if (this.#others.has(part)) return;
    const known = this.#destinations.get(destinationLevelOf(part.name.folder));
    known?.continued.delete(part);
    if (known?.continued.size === 0) known.finishedAt ??= this.#clock.now();
  }
}
