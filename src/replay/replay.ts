import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../core/errors.ts';
import type { Event, Handling } from '../core/event.ts';
import { formatTarget } from '../core/route.ts';
import { MemoryLog, type Refusal } from '../deliver/memory-log.ts';
import { RateWindow } from '../lib/rate-window.ts';
import { stepsOf, type UnitReader } from './ahead.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { Destinations } from './destinations.ts';
import { type Position, Tracker } from './tracker.ts';
import { type Candidate, NO_COUNTS, type Problem, type ReadCounts, type Step } from './unit.ts';

export interface ReplayOptions extends UnitReader {
  readonly checkpoint: Checkpoint;
  readonly destinations: Destinations;
  /** Whether an event's user was erased since it was read, which can be long ago. */
  readonly isErased: (event: Event) => boolean;
  /** Changes an event before it is sent; throws when it cannot. */
  readonly pseudonymiser: (event: Event) => Event;
  /** Events a second; null without a limit. */
  readonly rate: number | null;
  /** Most events and body bytes in flight. */
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** Resolves when live traffic leaves room; asked before each event. */
  readonly turn: (signal: AbortSignal) => Promise<void> | undefined;
  readonly onProblem: (problem: Problem) => void;
}

/** Reads events into `log`, from which a dispatcher sends them to sinks, and keeps the progress of the sinks on disk. */
export class Replay {
  readonly log: MemoryLog;
  readonly tracker: Tracker;
  readonly #options: ReplayOptions;
  readonly #pace: ReturnType<typeof paceOf>;
  readonly #handling: Handling;
  #saved: Position | null = null;

  constructor(options: ReplayOptions) {
    const { checkpoint, rate, maxEvents, maxBytes } = options;
    this.#options = options;
    this.tracker = new Tracker(checkpoint.before?.place ?? { unit: 0, at: 0 }, checkpoint.before?.counts);
    this.#pace = paceOf(rate);
    this.#handling = { replayId: checkpoint.plan.id };
    this.log = new MemoryLog({
      maxEvents,
      maxBytes,
      onRefused: (refusal) => this.#refuse(refusal),
      onSettled: (seq) => this.tracker.settle(seq),
    });
  }

  /** Resolves when everything is settled at every sink. @throws the signal's reason when it aborts */
  async run(signal: AbortSignal): Promise<void> {
    const { checkpoint } = this.#options;
    const { position } = this.tracker;
    let index = position.unit;
    for await (const [, steps] of stepsOf(checkpoint.units(index), this.#options, position.at, signal)) {
      for await (const step of steps) {
        await this.#hand(step, index, signal);
        this.#reach({ unit: index, at: step.at }, step.counts);
      }
      index += 1;
      this.#reach({ unit: index, at: 0 }, NO_COUNTS);
    }
    await this.log.idle(signal);
  }

  /** Makes progress durable, if there is any. */
  async save(done = false): Promise<void> {
    const { position } = this.tracker;
    if (position === this.#saved && !done) return;
    await this.#options.checkpoint.save({ place: position, counts: this.tracker.counts, done });
    this.#saved = position;
  }

  async #hand(step: Step, unit: number, signal: AbortSignal): Promise<void> {
    const { destinations, onProblem, turn, isErased } = this.#options;
    for (const problem of step.problems) onProblem(problem);
    for (const candidate of step.found) {
      if (!destinations.wants(candidate)) continue;
      const event = this.#pseudonymised(candidate);
      if (event === null) continue;
      const { redactions } = candidate;
      const targets = destinations.targetsFor(event.type, redactions);
      if (targets.length > 0) {
        await turn(signal);
        await this.#pace(signal);
        await this.log.room(signal);
        if (isErased(candidate.event)) {
          this.tracker.add({ erased: 1 });
          continue;
        }
        this.log.append(event, redactions === undefined ? this.#handling : { ...this.#handling, redactions });
      }
      const position = { unit, at: candidate.at };
      const handed = { type: event.type, targets, where: candidate.where };
      this.tracker.handed(this.log.lastSeq, position, candidate.countsSoFar, handed);
    }
    signal.throwIfAborted();
  }

  #pseudonymised({ event, where }: Candidate): Event | null {
    try {
      return this.#options.pseudonymiser(event);
    } catch (error) {
      this.#options.onProblem({ where, reason: `the event cannot be pseudonymised: ${messageOf(error)}` });
      this.tracker.add({ problems: 1 });
      return null;
    }
  }

  #reach(position: Position, counts: ReadCounts): void {
    this.tracker.stepped(this.log.lastSeq, position, counts);
    // Steps without events settle with the one before them.
    this.tracker.settle(this.log.settledSeq);
  }

  async #refuse({ sink, destination, code, reason, attempts, event }: Refusal): Promise<void> {
    // Without the event's id, as erasures do not search this file.
    await this.#options.checkpoint.refuse({
      found: this.tracker.whereOf(event.seq),
      event_type: event.type,
      target: formatTarget({ sink, destination }),
      code,
      reason,
      attempts,
    });
    this.tracker.refused(event.seq, { sink, destination });
  }
}

/** A replay makes up for at most this much of a pause. */
const CATCH_UP_MS = 100;

/**
 * Spreads events evenly over time, at most `perSecond` in any second.
 * @param perSecond null without a limit
 * @returns a function that resolves when the next event may be sent, and throws the signal's reason
 */
function paceOf(perSecond: number | null): (signal: AbortSignal) => Promise<void> {
  if (perSecond === null) return () => Promise.resolve();
  const window = new RateWindow(perSecond);
  let due = performance.now();
  return async (signal) => {
    const now = performance.now();
    due = Math.max(due + 1000 / perSecond, now - CATCH_UP_MS);
    // Timers have a resolution of a millisecond: an event due sooner is sent at once, and the next one later.
    if (due - now >= 1) await wait(due - now, undefined, { signal });
    for (let ms; (ms = window.wait(performance.now())) > 0;) await wait(Math.ceil(ms), undefined, { signal });
    window.take(performance.now());
  };
}
