import { formatTarget, type Target } from '../core/route.ts';
import { Counter, type Counts } from './counts.ts';
import { addTallies, type Tally } from './unit.ts';

/** A place in a replay: everything before it in the list of units, and in its unit up to `at`, is covered. */
export interface Place {
  /** Index of the unit. */
  readonly unit: number;
  readonly at: number;
}

/** What is true once everything up to `seq` is settled. */
interface Mark {
  readonly seq: number;
  readonly place: Place;
  readonly tally: Tally;
  readonly event: Handed | null;
}

/** An event that was handed on. */
export interface Handed {
  readonly type: string;
  readonly targets: readonly Target[];
  /** Where it was found. */
  readonly where: string;
}

/** Follows how far a replay is settled, and what has become of all of it up to there. */
export class Tracker {
  readonly #settled: Counter;
  #place: Place;
  #marks: Mark[] = [];
  /** What has been read so far, settled or not. */
  #read: Tally;
  readonly #refused = new Map<number, Map<string, number>>();

  constructor(place: Place, counts: Counts | undefined) {
    this.#place = place;
    this.#settled = new Counter(counts);
    this.#read = this.#settled.tally;
  }

  get place(): Place {
    return this.#place;
  }

  /** Of everything up to `place`. */
  get counts(): Counts {
    return this.#settled.counts();
  }

  /** What has been read, settled or not. */
  get read(): Tally {
    return this.#read;
  }

  /** An event was handed on as `seq`. @param so what its step had counted by then */
  handed(seq: number, place: Place, so: Tally, event: Handed): void {
    this.#marks.push({ seq, place, tally: addTallies(this.#read, so), event });
  }

  /** A step is over. @param seq of the newest event handed on */
  stepped(seq: number, place: Place, tally: Tally): void {
    this.#read = addTallies(this.#read, tally);
    this.#marks.push({ seq, place, tally: this.#read, event: null });
  }

  /** Something turned out to be of no use after it was read. */
  failed(): void {
    this.#read = { ...this.#read, problems: this.#read.problems + 1 };
  }

  /** Something was erased after it was read. */
  erased(): void {
    this.#read = { ...this.#read, erased: this.#read.erased + 1 };
  }

  /** Where an event that is not settled was found. */
  whereOf(seq: number): string | null {
    return this.#marks.find((mark) => mark.seq === seq && mark.event !== null)?.event?.where ?? null;
  }

  refused(seq: number, target: Target): void {
    const targets = this.#refused.get(seq) ?? new Map<string, number>();
    const key = formatTarget(target);
    this.#refused.set(seq, targets.set(key, (targets.get(key) ?? 0) + 1));
  }

  /** Everything up to and including `seq` is settled. */
  settle(seq: number): void {
    let count = 0;
    for (const mark of this.#marks) {
      if (mark.seq > seq) break;
      count += 1;
      this.#place = mark.place;
      this.#settled.tally = mark.tally;
      if (mark.event === null) continue;
      this.#settled.event(mark.event.type, mark.event.targets, this.#refused.get(mark.seq));
      this.#refused.delete(mark.seq);
    }
    if (count > 0) this.#marks = this.#marks.slice(count);
  }
}
