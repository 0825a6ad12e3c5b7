import type { JournalEvent } from '../../core/event.ts';
import type { ClaimCheck, SendResult, SinkTrouble } from '../../core/sink.ts';
import type { Compression } from '../../core/compression.ts';
import type { ArchiveFolder } from './open-folder.ts';
import type { Part, PartCare, PartPlace } from './part.ts';

/** Steps of finishing a file, each named after what has just become true. A crash between any two is mended at open. */
export const FINISH_STEPS = ['sealed', 'written', 'renamed', 'listed', 'removed'] as const;

/** The same, where the file goes to a store. */
export const STORE_STEPS = ['sealed', 'written', 'put', 'listed', 'removed'] as const;

export type FinishStep = (typeof FINISH_STEPS)[number] | (typeof STORE_STEPS)[number];

export interface Finishing {
  readonly signal: AbortSignal;
  /** Called for a part that could not be removed, with what tries again: an erasure waits for it. */
  readonly onLeft: (part: Part, remove: () => Promise<void>) => void;
}

/** A part found at open, mended. */
export interface RecoveredPart {
  readonly part: Part;
  /** As `identityOf` says them. */
  readonly ids: readonly string[];
  /**
   * `unfinished`: can take more records. `renamed`: the finished file exists, its manifest line does not; finish it
   * again. `listed`: all is done; only its ids matter.
   */
  readonly state: 'unfinished' | 'renamed' | 'listed';
}

/** What became of a part before a crash. */
export interface Recovery {
  /** How the part's finished file is compressed, which exists somewhere; null when there is none. */
  finishedAs(place: PartPlace): Promise<Compression | null>;
  /** Of these names of finished files, those that are in the manifest. */
  listed(names: ReadonlySet<string>): Promise<ReadonlySet<string>>;
  /** Does away with a part whose file is finished and listed. */
  dispose(part: Part): Promise<void>;
  /** The stem of the part that a file beside it was made of; null for any other file. */
  stemOf(name: string): string | null;
  /** Does away with what was made of a part that is not there any more. */
  clear(place: PartPlace): Promise<void>;
  /** Whether a file in a writer's folder that is no part is there by intent. */
  isOwn(name: string): boolean;
}

/** Where finished files go, and what that means for the events in them: the archive's folder, or a store. */
export interface Target {
  /** For messages: what readers open. */
  readonly name: string;
  /** Of a finished file, as readers open it. */
  nameOf(file: string): string;
  /** How parts are written that are to be finished here. */
  readonly care: PartCare;
  /** The folder for open parts was taken, or taken anew. */
  take(folder: ArchiveFolder): Promise<Recovery>;
  /** What was found in it, all of it. */
  recovered(parts: readonly RecoveredPart[]): Promise<void>;
  /**
   * Turns a sealed part into a finished file with a line in the manifest; doing it again after a crash at any step gives the
   * same file and one line.
   * @returns its name in the archive
   * @throws when a step fails or the signal aborts; the part is then as it was
   */
  finish(part: Part, finishing: Finishing): Promise<string>;
  /** The part is finished, in this run or before a crash: its events have come to their place. */
  finished(part: Part): void;
  /** What an event in the part is answered with; null when the part is lost. */
  answer(part: Part): SendResult | null;
  /** Why nothing more can be taken now, or null. @param waiting bytes of parts that are not finished */
  full(waiting: number): string | null;
  /** A part has disappeared with all that was in it. */
  lost(part: Part, why: string): Promise<void>;
  /** What to do about a folder for open parts that was replaced. */
  readonly afterReplacement: string;
  keep(event: JournalEvent): Promise<ClaimCheck>;
  /** Called now and then: what could not be done can be tried again. */
  look(): Promise<void>;
  troubles(): readonly SinkTrouble[];
  close(): Promise<void>;
}
