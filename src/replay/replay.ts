import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../core/errors.ts';
import type { Event, Handling } from '../core/event.ts';
import { formatTarget } from '../core/route.ts';
import { MemoryLog, type Refusal } from '../deliver/memory-log.ts';
import { RateWindow } from '../lib/rate-window.ts';
import { inSight, readAhead } from '../lib/read-ahead.ts';
import { AHEAD, IN_SIGHT } from './ahead.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { Counts } from './counts.ts';
import type { Destinations } from './destinations.ts';
import { Tracker } from './tracker.ts';
import type { Candidate, Problem, Step, Tally, Unit } from './unit.ts';

/** Reads a unit from behind a place in it. */
export type ReadUnit = (unit: Unit, from: number, signal: AbortSignal) => AsyncIterable<Step>;

export interface ReplayOptions {
  readonly checkpoint: Checkpoint;
  readonly read: ReadUnit;
  /** Told of each unit a while before it is read. */
  readonly expect?: ((unit: Unit) => void) | undefined;
  readonly destinations: Destinations;
  /** Whether an event's user was erased since it was read: it may have waited for long. */
  readonly isErased: (event: Event) => boolean;
  /** Changes an event before it goes out; throws when it cannot. */
  readonly pseudonymiser: (event: Event) => Event;
  /** Events a second; null for as many as the sinks take. */
  readonly rate: number | null;
  /** Events and body bytes on the way at most. */
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** Resolves when nothing has a better claim to the sinks; asked before each event. */
  readonly turn: (signal: AbortSignal) => Promise<void> | undefined;
  readonly onProblem: (problem: Problem) => void;
}

const NOTHING: Tally = { read: 0, erased: 0, problems: 0, bytes: 0 };

/**
 * Plays events into sinks: reads on while there is room, follows how far every sink has got, and remembers it. What
 * carries the events from `log` to the sinks is the dispatcher's part.
 */
export class Replay {
  readonly log: MemoryLog;
  readonly #options: ReplayOptions;
  readonly #tracker: Tracker;
  readonly #pace: Pace;
  readonly #handling: Handling;
  #saved: object | null = null;

  constructor(options: ReplayOptions) {
    const { checkpoint, rate, maxEvents, maxBytes } = options;
    this.#options = options;
    this.#tracker = new Tracker(checkpoint.before?.place ?? { unit: 0, at: 0 }, checkpoint.before?.counts);
    this.#pace = new Pace(rate);
    this.#handling = { replayId: checkpoint.plan.id };
    this.log = new MemoryLog({
      maxEvents,
      maxBytes,
      onRefused: (refusal) => this.#refuse(refusal),
      onSettled: (seq) => this.#tracker.settle(seq),
    });
  }

  /** What is settled. */
  get counts(): Counts {
    return this.#tracker.counts;
  }

  /** What is read. */
  get read(): Tally {
    return this.#tracker.read;
  }

  /** Resolves when everything is settled at every sink. @throws the signal's reason when it aborts */
  async run(signal: AbortSignal): Promise<void> {
    const { checkpoint, read, expect = () => undefined } = this.#options;
    const { place } = this.#tracker;
    const units = inSight(checkpoint.units(place.unit), IN_SIGHT, ([, unit]) => expect(unit));
    const ahead = readAhead(units, {
      ...AHEAD,
      open: ([index, unit]) => read(unit, index === place.unit ? place.at : 0, signal),
      isEarly: ([, unit]) => unit.kind === 'file',
    });
    for await (const [[index], steps] of ahead) {
      for await (const step of steps) {
        await this.#hand(step, index, signal);
        this.#reached(index, step.at, step.tally);
      }
      this.#reached(index + 1, 0, NOTHING);
    }
    await this.log.idle(signal);
  }

  /** Makes what is settled durable, unless it is. */
  async save(done = false): Promise<void> {
    const { place } = this.#tracker;
    if (place === this.#saved && !done) return;
    await this.#options.checkpoint.save({ place, counts: this.counts, done });
    this.#saved = place;
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
        await this.#pace.next(signal);
        await this.log.room(signal);
        if (isErased(candidate.event)) {
          this.#tracker.erased();
          continue;
        }
        this.log.append(event, redactions === undefined ? this.#handling : { ...this.#handling, redactions });
      }
      const place = { unit, at: candidate.at };
      const handed = { type: event.type, targets, where: candidate.where };
      this.#tracker.handed(this.log.lastSeq, place, candidate.so, handed);
    }
    signal.throwIfAborted();
  }

  #pseudonymised({ event, where }: Candidate): Event | null {
    try {
      return this.#options.pseudonymiser(event);
    } catch (error) {
      this.#options.onProblem({ where, reason: `the event cannot be pseudonymised: ${messageOf(error)}` });
      this.#tracker.failed();
      return null;
    }
  }

  #reached(unit: number, at: number, tally: Tally): void {
    this.#tracker.stepped(this.log.lastSeq, { unit, at }, tally);
    // Steps without an event settle with the one before them.
    this.#tracker.settle(this.log.settledSeq);
  }

  async #refuse({ sink, destination, code, reason, attempts, event }: Refusal): Promise<void> {
    // Without its id, which an erasure would not find here: where it was found leads to it.
    await this.#options.checkpoint.refuse({
      found: this.#tracker.whereOf(event.seq),
      event_type: event.type,
      target: formatTarget({ sink, destination }),
      code,
      reason,
      attempts,
    });
    this.#tracker.refused(event.seq, { sink, destination });
  }
}

/** Milliseconds that what was not used may be caught up on: a replay is steady, and never makes up for a pause. */
const CATCH_UP = 100;

/** Spreads events evenly over time, and no second has more of them than the rate says. */
class Pace {
  readonly #gap: number;
  readonly #window: RateWindow | null;
  #due = performance.now();

  /** @param perSecond events; null holds nothing back */
  constructor(perSecond: number | null) {
    this.#gap = perSecond === null ? 0 : 1000 / perSecond;
    this.#window = perSecond === null ? null : new RateWindow(perSecond);
  }

  /** Resolves when the next event may go. @throws the signal's reason */
  async next(signal: AbortSignal): Promise<void> {
    const window = this.#window;
    if (window === null) return;
    const now = performance.now();
    this.#due = Math.max(this.#due + this.#gap, now - CATCH_UP);
    // A timer is no finer than a millisecond; what is due sooner goes at once, and the next one later.
    if (this.#due - now >= 1) await wait(this.#due - now, undefined, { signal });
    for (let ms; (ms = window.wait(performance.now())) > 0;) await wait(Math.ceil(ms), undefined, { signal });
    window.take(performance.now());
  }
}
