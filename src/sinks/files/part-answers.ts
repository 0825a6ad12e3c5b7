import type { SendResult } from '../../core/sink.ts';
import type { RecoveredPart } from './recover.ts';
import type { Part, PartCare } from './part.ts';

/** What the events in a part are answered, and what happens to them when the part is lost. */
export interface PartAnswers {
  /** How parts must be written for these answers. */
  readonly care: PartCare;
  /** Null when the part is lost. */
  of(part: Part): SendResult | null;
  /** All parts found at open. */
  recovered(parts: readonly RecoveredPart[]): void;
  /** The records of the part are in the archive, and in its manifest. May be called again. */
  finished(part: Part): void;
  /** The part has disappeared with its records. Never rejects. */
  lost(part: Part, why: string): Promise<void>;
  /** What an operator does after the folder of open parts was replaced. */
  readonly afterReplacement: string;
  /** Tries again what failed for lost parts. Never rejects. */
  retry(): Promise<void>;
  /** Cancels all timers. */
  stop(): void;
}
