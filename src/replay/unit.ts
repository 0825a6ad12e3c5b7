import type { Event } from '../core/event.ts';
import type { Redaction } from '../core/redaction.ts';
import type { Taken } from './selection.ts';

/**
 * One thing that is read from its beginning to its end. The list of them is made once, when a replay starts, so that
 * what comes later (from the receiver, or from the replay itself) is no part of it.
 */
export type Unit =
  | FileUnit
  | { readonly kind: 'journal'; readonly after: number; readonly upTo: number }
  /** A partition of a journal that a fleet shares. */
  | { readonly kind: 'topic'; readonly partition: number; readonly after: number; readonly upTo: number }
  | { readonly kind: 'quarantine' | 'dead-letters' }
  /** Something that was found and cannot be read. */
  | { readonly kind: 'unreadable'; readonly where: string; readonly reason: string };

export interface FileUnit {
  readonly kind: 'file';
  /** Of its place: absolute, or a URL. */
  readonly root: string;
  /** Below `root`, `/`-separated. */
  readonly file: string;
  /** `lines`: an event a line. `part`: the same, still written to. `event`: the whole file is one event. */
  readonly form: 'lines' | 'part' | 'event';
  /** Size on disk; of a part, no more than this is read. */
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  /** Of an object in a store: another after each change. */
  readonly version?: string;
}

/** An event that the selection takes. */
export interface Candidate {
  readonly event: Event;
  /** Where it was found, for messages: `file:line`, `journal:seq`. */
  readonly where: string;
  /** Place in its unit: line, seq or key. */
  readonly at: number;
  /** The sink that refused it, of a dead letter. */
  readonly refusedBy?: string;
  /** What it had to go without there. */
  readonly redactions?: readonly Redaction[];
  /** What its step had counted by then, itself included. */
  readonly so: Tally;
}

export interface Tally {
  /** Lines, events and letters looked at. */
  readonly read: number;
  /** Of these, sealed records whose key an erasure has destroyed. */
  readonly erased: number;
  /** What could not be read, or not be pseudonymised. */
  readonly problems: number;
  /** Of files, as they lie on disk. */
  readonly bytes: number;
}

export function addTallies(one: Tally, other: Tally): Tally {
  return {
    read: one.read + other.read,
    erased: one.erased + other.erased,
    problems: one.problems + other.problems,
    bytes: one.bytes + other.bytes,
  };
}

export interface Problem {
  readonly where: string;
  readonly reason: string;
}

/** What one go at reading a unit has found. */
export interface Step {
  /** Everything in the unit up to and including this place is covered by the steps so far. */
  readonly at: number;
  readonly tally: Tally;
  readonly found: readonly Candidate[];
  readonly problems: readonly Problem[];
}

/** What is said of an event that was a dead letter. */
export type Letter = Pick<Candidate, 'refusedBy' | 'redactions'>;

/** Gathers a step. */
export class StepMaker {
  readonly #found: Candidate[] = [];
  readonly #problems: Problem[] = [];
  #at: number;
  #read = 0;
  #erased = 0;

  constructor(at: number) {
    this.#at = at;
  }

  /** The lines up to this one were looked at, and are not taken. */
  passTo(line: number): void {
    this.#read += line - this.#at;
    this.#at = line;
  }

  /** All up to this one is covered. */
  reach(at: number): void {
    this.#at = at;
  }

  take(at: number, where: string, taken: Taken, letter: Letter = {}): void {
    this.#at = at;
    this.#read += 1;
    if (taken === 'passed') return;
    if (taken === 'erased') this.#erased += 1;
    else if (!taken.ok) this.problem(where, taken.reason);
    else {
      this.#found.push({ event: taken.event, where, at, ...letter, so: this.#tally(0) });
    }
  }

  problem(where: string, reason: string): void {
    this.#problems.push({ where, reason });
  }

  /** @param bytes on disk that the step has read; 0 for what is no file */
  made(bytes = 0): Step {
    return { at: this.#at, tally: this.#tally(bytes), found: this.#found, problems: this.#problems };
  }

  #tally(bytes: number): Tally {
    return { read: this.#read, erased: this.#erased, problems: this.#problems.length, bytes };
  }
}
