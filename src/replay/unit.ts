import type { Event } from '../core/event.ts';
import type { Redaction } from '../core/route.ts';
import type { SelectResult } from './selection.ts';

/**
 * Something that is read from its beginning to its end. All units are listed when a replay starts: events that arrive
 * later, also from the replay itself, are not part of it.
 */
export type Unit =
  | FileUnit
  | { readonly kind: 'journal'; readonly after: number; readonly upTo: number }
  /** A partition of a fleet's journal. */
  | { readonly kind: 'topic'; readonly partition: number; readonly after: number; readonly upTo: number }
  | { readonly kind: 'quarantine' | 'dead-letters' }
  /** Something that cannot be read. */
  | { readonly kind: 'unreadable'; readonly where: string; readonly reason: string };

export interface FileUnit {
  readonly kind: 'file';
  /** An absolute folder, or a URL. */
  readonly root: string;
  /** Below `root`, `/`-separated. */
  readonly file: string;
  /** `lines`: an event a line. `part`: the same, still written to. `event`: the whole file is one event. */
  readonly form: 'lines' | 'part' | 'event';
  /** Size on disk; of a part, no more than this is read. */
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  /** Changes with the file; absent for a file that a compaction has replaced. */
  readonly version?: string;
}

/** An event that the selection matches. */
export interface Candidate extends DeadLetterFacts {
  readonly event: Event;
  /** Where it was found, for messages: `file:line`, `journal:seq`. */
  readonly where: string;
  /** Line, seq or key in its unit. */
  readonly at: number;
  /** Counts of its step, up to and including this event. */
  readonly countsSoFar: ReadCounts;
}

/** Set for an event that was a dead letter, or was redacted. */
export interface DeadLetterFacts {
  /** The sink that refused it. */
  readonly refusedBy?: string;
  /** Redactions that applied to it there. */
  readonly redactions?: readonly Redaction[];
}

export interface ReadCounts {
  /** Lines and events read. */
  readonly read: number;
  /** Of these, events of erased users. */
  readonly erased: number;
  /** What could not be read or pseudonymised. */
  readonly problems: number;
  /** Of files, on disk. */
  readonly bytes: number;
}

export const NO_COUNTS: ReadCounts = { read: 0, erased: 0, problems: 0, bytes: 0 };

export function addCounts(one: ReadCounts, other: Partial<ReadCounts>): ReadCounts {
  const { read = 0, erased = 0, problems = 0, bytes = 0 } = other;
  return {
    read: one.read + read,
    erased: one.erased + erased,
    problems: one.problems + problems,
    bytes: one.bytes + bytes,
  };
}

export interface Problem {
  readonly where: string;
  readonly reason: string;
}

/** A part of a unit that was read at once. */
export interface Step {
  /** The steps so far cover the unit up to and including this line, seq or key. */
  readonly at: number;
  readonly counts: ReadCounts;
  readonly found: readonly Candidate[];
  readonly problems: readonly Problem[];
}

/** Builds a step. */
export class StepMaker {
  readonly #found: Candidate[] = [];
  readonly #problems: Problem[] = [];
  #at: number;
  #read = 0;
  #erased = 0;

  constructor(at: number) {
    this.#at = at;
  }

  /** Counts lines up to this one that the selection does not match. */
  skipTo(line: number): void {
    this.#read += line - this.#at;
    this.#at = line;
  }

  /** Covers the unit up to here without counting. */
  reach(at: number): void {
    this.#at = at;
  }

  add(at: number, where: string, result: SelectResult, facts: DeadLetterFacts = {}): void {
    this.#at = at;
    this.#read += 1;
    if (result === 'other') return;
    if (result === 'erased') this.#erased += 1;
    else if (!result.ok) this.problem(where, result.reason);
    else this.#found.push({ event: result.event, where, at, ...facts, countsSoFar: this.#counts(0) });
  }

  problem(where: string, reason: string): void {
    this.#problems.push({ where, reason });
  }

  /** @param bytes on disk that the step has read; 0 for what is no file */
  made(bytes = 0): Step {
    return { at: this.#at, counts: this.#counts(bytes), found: this.#found, problems: this.#problems };
  }

  #counts(bytes: number): ReadCounts {
    return { read: this.#read, erased: this.#erased, problems: this.#problems.length, bytes };
  }
}
