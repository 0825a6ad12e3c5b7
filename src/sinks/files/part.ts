import { createHash, type Hash } from 'node:crypto';
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DATA_EXTENSIONS, PART_EXTENSION } from '../../core/archive.ts';
import type { Compression } from '../../core/compression.ts';
import type { Event } from '../../core/event.ts';
import { AppendFile } from '../../lib/append-file.ts';
import { isMissing } from '../../lib/durable.ts';

/** What the manifest will say about the records of a file. */
export class PartStats {
  records = 0;
  firstReceivedAt = Number.POSITIVE_INFINITY;
  lastReceivedAt = Number.NEGATIVE_INFINITY;
  readonly types = new Map<string, number>();

  /** @param receivedAt milliseconds since the epoch */
  add(type: string, receivedAt: number): void {
    this.records += 1;
    this.types.set(type, (this.types.get(type) ?? 0) + 1);
    if (receivedAt < this.firstReceivedAt) this.firstReceivedAt = receivedAt;
    if (receivedAt > this.lastReceivedAt) this.lastReceivedAt = receivedAt;
  }
}

/** Where a part lies and what its finished file will be called. */
export interface PartPlace {
  /** The writer's folder for unfinished files, absolute. */
  readonly openFolder: string;
  /** Folder below the archive, `/`-separated, the same below `openFolder`. */
  readonly folder: string;
  /** File name without extension, unique in the archive. */
  readonly stem: string;
}

/** How a part is written. */
export interface PartCare {
  /** Whether what is appended is on disk at once, or when the part is closed: what is held can be sent again. */
  readonly syncs: boolean;
  /** Whether its bytes are hashed as they come, because they are those of the finished file. */
  readonly hashes: boolean;
}

export const CAREFUL: PartCare = { syncs: true, hashes: false };

/** What of a part may be known of before. */
export interface PartState {
  readonly stats?: PartStats;
  readonly length?: number;
  readonly compression?: Compression | null;
}

/** The unfinished file of one partition: a plain log of complete records. Once it is closed it waits to be finished. */
export class Part extends AppendFile {
  readonly place: PartPlace;
  readonly stats: PartStats;
  /** Set where the finished file exists already: it may be compressed in another way than the configured one. */
  readonly compression: Compression | null;
  /** Seqs of the events in it, but for those from before a restart. */
  readonly seqs = new NumberRuns();
  /** Of those events. */
  destination: string | null = null;
  readonly care: PartCare;
  /** Null too when it may hold what is not in the file. */
  #hash: Hash | null;

  constructor(place: PartPlace, { stats, length = 0, compression }: PartState = {}, care = CAREFUL) {
    super(pathIn(place, PART_EXTENSION), length, care.syncs);
    this.place = place;
    this.stats = stats ?? new PartStats();
    this.compression = compression ?? null;
    this.care = care;
    this.#hash = care.hashes ? createHash('sha256') : null;
  }

  /** Lower-case hex SHA-256 of all that was added, where it is hashed. */
  get sha256(): string | null {
    return this.#hash?.copy().digest('hex') ?? null;
  }

  /** Absolute path of the finished file while it is being written. */
  get temporaryPath(): string {
    return pathIn(this.place, '.tmp');
  }

  /** Path of the finished file inside the archive, `/`-separated. */
  finishedName(compression: Compression): string {
    return finishedPlace(this.place, compression).name;
  }

  /**
   * Appends the records of these events; once it resolves they are on disk. When it throws, none of them counts.
   * @param lines whole records, each with its line feed, in pieces
   * @throws FileGone when what it holds is lost
   */
  async add(lines: readonly Buffer[], events: readonly Pick<Event, 'type' | 'receivedAt'>[]): Promise<void> {
    try {
      await this.append(...lines);
    } catch (error) {
      this.#hash = null;
      throw error;
    }
    for (const event of events) this.stats.add(event.type, event.receivedAt);
  }

  protected override whileWriting(pieces: readonly Buffer[]): void {
    for (const piece of pieces) this.#hash?.update(piece);
  }

  /** Removes a closed part that holds nothing. */
  async discard(): Promise<void> {
    await unlink(this.path).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
  }
}

function pathIn({ openFolder, folder, stem }: PartPlace, extension: string): string {
  return join(openFolder, folder, `${stem}${extension}`);
}

/** What the finished file is called in the archive, and where it lies until it is in a store. */
export function finishedPlace(
  { openFolder, folder, stem }: PartPlace,
  compression: Compression,
): { readonly name: string; readonly path: string } {
  const file = `${stem}${DATA_EXTENSIONS[compression]}`;
  return { name: folder === '' ? file : `${folder}/${file}`, path: join(openFolder, folder, file) };
}

/** More runs than this are not kept: memory must have an end. */
const MOST = 100_000;

/** Whole numbers that come in roughly ascending order, kept as runs: a million in a row take no more than one. */
class NumberRuns {
  readonly #runs: [first: number, last: number][] = [];

  /** In any order. Past the bound they are left out. */
  add(numbers: readonly number[]): void {
    for (const number of numbers.toSorted((one, other) => one - other)) {
      const run = this.#runs.at(-1);
      if (run !== undefined && number === run[1] + 1) run[1] = number;
      else if (this.#runs.length < MOST) this.#runs.push([number, number]);
    }
  }

  /** Each once, ascending. */
  all(): number[] {
    const all = new Set<number>();
    for (const [first, last] of this.#runs)
      for (let number = first; number <= last; number += 1) all.add(number);
    return [...all].toSorted((one, other) => one - other);
  }
}
