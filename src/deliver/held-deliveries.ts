import type { JournalEvent } from '../core/event.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import { NumberSet } from '../lib/number-set.ts';

/** Seqs of events by the destination that their delivery is for. */
export type Seqs = Map<string | null, NumberSet>;

export interface HeldEvents {
  /** The sink has confirmed deliveries. */
  readonly onConfirmed: (deliveries: number, seqs: Seqs) => void;
  /** Deliveries have to be loaded and sent again. */
  readonly onRejected: (deliveries: number, reason: unknown) => void;
}

/** A delivery that was held, and is loaded to be sent again. */
export interface Again {
  readonly event: JournalEvent;
  readonly destination: string | null;
}

/**
 * Deliveries without their events, of which ten million take some megabytes: held (the sink has them on its disk and has
 * said that it will confirm them) → confirmed, and forgotten; or → rejected → reloaded (they are pending again) → settled,
 * and forgotten, or held once more.
 */
export class HeldDeliveries {
  readonly #events: HeldEvents;
  /** By what says when they are confirmed, the same for many. */
  readonly #held = new Map<Promise<void>, Seqs>();
  readonly #rejected: Seqs = new Map();
  readonly #reloaded: Seqs = new Map();
  #count = 0;

  constructor(events: HeldEvents) {
    this.#events = events;
  }

  /** Deliveries held now. */
  get count(): number {
    return this.#count;
  }

  /** Deliveries lost, and not loaded again yet. */
  get rejected(): number {
    return sizeOf(this.#rejected);
  }

  /** Seq of the first event that is not confirmed; Infinity without any. */
  get least(): number {
    let least = this.leastToSend;
    for (const seqs of this.#held.values()) least = Math.min(least, leastOf(seqs));
    return least;
  }

  /** Seq of the first event that is to be sent again; Infinity without any. */
  get leastToSend(): number {
    return Math.min(leastOf(this.#rejected), leastOf(this.#reloaded));
  }

  /** Seq of the first event that is to be loaded again; Infinity without any. */
  get toReload(): number {
    return leastOf(this.#rejected);
  }

  /** The first event from a seq on that a destination has not confirmed; Infinity for none. */
  from(destination: string | null, seq: number): number {
    let first = Number.POSITIVE_INFINITY;
    for (const seqs of [this.#rejected, this.#reloaded, ...this.#held.values()])
      first = Math.min(first, seqs.get(destination)?.from(seq) ?? Number.POSITIVE_INFINITY);
    return first;
  }

  hold({ event: { seq }, destination }: Again, until: Promise<void>): void {
    let seqs = this.#held.get(until);
    if (seqs === undefined) {
      seqs = new Map();
      this.#held.set(until, seqs);
      // A promise of the sink's; what only looks like one might call back twice.
      Promise.resolve(until).then(
        () => this.#confirm(until),
        (reason: unknown) => this.#reject(until, reason),
      );
    }
    getOrMake(seqs, destination, () => new NumberSet()).add(seq);
    this.#count += 1;
  }

  /**
   * Takes out what is to be sent again of a page of the journal; what is missing in it is not in the journal any more.
   * @param events empty at the end of the journal
   * @param after what comes before the page: it may have been rejected since that was asked for
   */
  reload(events: readonly JournalEvent[], after: number): Again[] {
    const upTo = events.at(-1)?.seq ?? Number.POSITIVE_INFINITY;
    const bySeq = new Map(events.map((event) => [event.seq, event]));
    const again: Again[] = [];
    for (const [destination, seqs] of this.#rejected) {
      for (let seq = seqs.from(after + 1); seq <= upTo && seq < Infinity; seq = seqs.from(after + 1)) {
        seqs.delete(seq);
        const event = bySeq.get(seq);
        if (event === undefined) continue;
        getOrMake(this.#reloaded, destination, () => new NumberSet()).add(seq);
        again.push({ event, destination });
      }
    }
    return again.toSorted((one, other) => one.event.seq - other.event.seq);
  }

  /** What was loaded again is delivered, dead, held once more, or not to be sent any more. */
  settle({ event, destination }: Again): void {
    this.#reloaded.get(destination)?.delete(event.seq);
  }

  #confirm(until: Promise<void>): void {
    const seqs = this.#take(until);
    this.#events.onConfirmed(sizeOf(seqs), seqs);
  }

  #reject(until: Promise<void>, reason: unknown): void {
    const seqs = this.#take(until);
    for (const [destination, own] of seqs) {
      const known = getOrMake(this.#rejected, destination, () => own);
      if (known !== own) for (const seq of own.values()) known.add(seq);
    }
    this.#events.onRejected(sizeOf(seqs), reason);
  }

  #take(until: Promise<void>): Seqs {
    const seqs = this.#held.get(until) ?? new Map<string | null, NumberSet>();
    this.#held.delete(until);
    this.#count -= sizeOf(seqs);
    return seqs;
  }
}

function leastOf(seqs: Seqs): number {
  let least = Number.POSITIVE_INFINITY;
  for (const own of seqs.values()) least = Math.min(least, own.least);
  return least;
}

function sizeOf(seqs: Seqs): number {
  let size = 0;
  for (const own of seqs.values()) size += own.size;
  return size;
}

export function* seqsOf(seqs: Seqs): Generator<readonly [destination: string | null, seq: number]> {
  for (const [destination, own] of seqs) for (const seq of own.values()) yield [destination, seq];
}
