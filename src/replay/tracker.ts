import { formatTarget, type Target } from '../core/route.ts';
import { Counter, type Counts } from './counts.ts';
import { addCounts, type ReadCounts } from './unit.ts';

/** Covers all units before `unit`, and that one up to and including `at`. */
export interface Position {
  /** Index of the unit. */
  readonly unit: number;
  readonly at: number;
}

/** Position and counts that hold once everything up to `seq` is settled. */
interface Mark {
  readonly seq: number;
  readonly position: Position;
  readonly counts: ReadCounts;
  readonly event: Handed | null;
}

/** An event that was handed to its targets. */
export interface Handed {
  readonly type: string;
  readonly targets: readonly Target[];
  /** Where it was found. */
  readonly where: string;
}

/** Follows how far a replay is settled, and counts what has become of its events up to there. */
export class Tracker {
  /** Everything up to here is settled. */
  position: Position;
  /** Of everything that was read, settled or not. */
  read: ReadCounts;
  readonly #settled: Counter;
  #marks: Mark[] = [];
  readonly #refused = new Map<number, Map<string, number>>();

  constructor(position: Position, counts: Counts | undefined) {
    this.position = position;
    this.#settled = new Counter(counts);
    this.read = this.#settled.read;
  }

  /** Of everything up to `position`. */
  get counts(): Counts {
    return this.#settled.counts();
  }

  /** Notes an event handed on as `seq`. @param soFar counts of its step, up to and including this event */
  handed(seq: number, position: Position, soFar: ReadCounts, event: Handed): void {
    this.#marks.push({ seq, position, counts: addCounts(this.read, soFar), event });
  }

  /** Notes the end of a step. @param seq of the newest event handed on */
  stepped(seq: number, position: Position, counts: ReadCounts): void {
    this.read = addCounts(this.read, counts);
    this.#marks.push({ seq, position, counts: this.read, event: null });
  }

  /** Counts an event that was read and cannot be sent. */
  add(counts: Partial<ReadCounts>): void {
    this.read = addCounts(this.read, counts);
  }

  /** Where an unsettled event was found. */
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
      this.position = mark.position;
      this.#settled.read = mark.counts;
      if (mark.event === null) continue;
      this.#settled.event(mark.event.type, mark.event.targets, this.#refused.get(mark.seq));
      this.#refused.delete(mark.seq);
    }
    if (count > 0) this.#marks = this.#marks.slice(count);
  }
}
