import { createHash, type Hash } from 'node:crypto';
import { rm, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DATA_EXTENSIONS, PART_EXTENSION, SENT_EXTENSION } from '../../core/archive.ts';
import type { Compression } from '../../core/compression.ts';
import type { JournalEvent } from '../../core/event.ts';
import { AppendFile } from '../../lib/append-file.ts';
import { ignoreMissing, syncFolder } from '../../lib/durable.ts';
import { PartStats } from './part-stats.ts';

/** More are not remembered, to bound the memory. */
const MOST_SEQS = 1_000_000;

/** Where a part lies, and what its finished file will be called. */
export interface PartName {
  /** The writer's folder for unfinished files, absolute. */
  readonly openFolder: string;
  /** Folder below the archive, `/`-separated, the same below `openFolder`. */
  readonly folder: string;
  /** File name without extension, unique in the archive. */
  readonly stem: string;
}

/** The records of one batch for one part. */
export interface BatchRecords {
  /** Whole records, each with its line feed, in pieces. */
  readonly lines: readonly Buffer[];
  /** As the manifest counts them. */
  readonly counted: readonly Pick<JournalEvent, 'type' | 'receivedAt'>[];
  readonly events: readonly JournalEvent[];
  readonly destination: string | null;
}

/** How a part is written. */
export interface PartCare {
  /** Whether each append is synced, or the part only when it is closed: its events can be sent again. */
  readonly syncs: boolean;
  /** Whether its bytes are hashed as they come, because they are those of the finished file. */
  readonly hashes: boolean;
}

/** What is known of a part that a crash left. */
export interface FoundPart {
  readonly stats?: PartStats;
  readonly length?: number;
  readonly compression?: Compression | null;
}

/** The unfinished file of one partition: a plain log of complete records. Once it is closed it waits to be finished. */
export class Part extends AppendFile {
  readonly name: PartName;
  readonly stats: PartStats;
  /** Of the finished file, if there is one: it may differ from the configured compression. */
  readonly compression: Compression | null;
  /** Sequence numbers of its events, at most a million, without those from before a restart. */
  readonly seqs: number[] = [];
  /** Of those events. */
  destination: string | null = null;
  readonly care: PartCare;
  /** Null too when a failed append may be in it, but not in the file. */
  #hash: Hash | null;

  constructor(
    name: PartName,
    { stats, length = 0, compression }: FoundPart = {},
    care: PartCare = { syncs: true, hashes: false },
  ) {
    super(partPath(name), length, care.syncs);
    this.name = name;
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
    return pathOf(this.name, '.tmp');
  }

  /**
   * Appends records; once it resolves they are on disk, if the part syncs. When it throws, none of them counts.
   * @throws FileGone when what it holds is lost
   */
  async add({ lines, counted, events, destination }: BatchRecords): Promise<void> {
    try {
      await this.append(...lines);
    } catch (error) {
      this.#hash = null;
      throw error;
    }
    for (const { type, receivedAt } of counted) this.stats.add(type, receivedAt);
    this.destination = destination;
    if (this.seqs.length < MOST_SEQS) for (const { seq } of events) this.seqs.push(seq);
  }

  protected override whileWriting(pieces: readonly Buffer[]): void {
    for (const piece of pieces) this.#hash?.update(piece);
  }

  /** Removes a closed part that holds nothing. */
  async discard(): Promise<void> {
    await unlink(this.path).catch(ignoreMissing);
  }
}

export function partPath(name: PartName): string {
  return pathOf(name, PART_EXTENSION);
}

/** Where the records of a part lie once they are in the store. */
export function sentPath(name: PartName): string {
  return pathOf(name, SENT_EXTENSION);
}

/** Where the finished file of a part lies until it is in the store. */
export function pathBeside(name: PartName, compression: Compression): string {
  return pathOf(name, DATA_EXTENSIONS[compression]);
}

/** The finished file of a part, relative to the archive. */
export function fileOf({ folder, stem }: Omit<PartName, 'openFolder'>, compression: Compression): string {
  const file = `${stem}${DATA_EXTENSIONS[compression]}`;
  return folder === '' ? file : `${folder}/${file}`;
}

function pathOf({ openFolder, folder, stem }: PartName, extension: string): string {
  return join(openFolder, folder, `${stem}${extension}`);
}

export const NOT_REMOVED = 'part of a closed file could not be removed';

/** Synced: a power cut must not bring back records that an erasure removes from the finished file next. */
export async function removePart({ path }: { readonly path: string }): Promise<void> {
  // An earlier call may have removed it, and failed to sync.
  await rm(path, { force: true });
  await syncFolderOf(path);
}

/** Where the folder is gone, another part was the last one in it: then syncs the folder above. */
export async function syncFolderOf(path: string): Promise<void> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      return await syncFolder(folder);
    } catch (error) {
      ignoreMissing(error);
    }
  }
}
