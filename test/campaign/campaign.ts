import type { Lack } from '../support/requirements.ts';
import type { Scene } from './scene.ts';

/** A fault, done to a receiver under load again and again. */
export interface Campaign {
  readonly summary: string;
  /** What `--break` breaks on purpose; the run has to notice and fail. */
  readonly breaks: string;
  /** Counts as acknowledged, when broken, what the receiver has not got yet. */
  readonly breaksAnswers?: boolean;
  /** Why it cannot run here, whole or broken. */
  lacks(broken: boolean): Lack;
  /** Prepares a scene, once for each history, and returns what one cycle does: at least one fault. */
  prepare(scene: Scene): () => Promise<void>;
}

export interface RunOptions {
  readonly cycles: number;
  readonly seed: number;
  /** Breaks what the campaign holds. */
  readonly broken: boolean;
}

/** What a run counted. */
export interface Tally {
  readonly cycles: number;
  readonly faults: number;
  /** Events that were answered with 2xx. */
  readonly acknowledged: number;
  /** Of those, how many are not at every sink of their route. */
  readonly lost: number;
  /** Events that a sink has more than once, in different files: at least once allows it. */
  readonly repeated: number;
  readonly failures: readonly Failure[];
}

export interface Failure {
  /** Of the history that failed: the same again with `--seed <seed> --cycles <cycles>`. */
  readonly seed: number;
  readonly cycles: number;
  readonly findings: readonly string[];
}
