import { statfsSync } from 'node:fs';
import type Database from 'better-sqlite3';
import type { JournalOptions } from './protocol.ts';
import { sqliteCode } from './sqlite-errors.ts';

const MIB = 2 ** 20;
/** So much room cannot be used up within so many milliseconds, by whomever it is. */
const PLENTY = { bytes: 1024 * MIB, ms: 100 };

interface SpaceParts {
  readonly db: Database.Database;
  readonly events: { readonly log: { readonly bytes: number } };
  readonly scrubber: { readonly heldBytes: number };
}

/** How much the journal holds, and whether it may hold more. */
export class Space {
  readonly #options: JournalOptions;
  readonly #counters;
  readonly #pageSize: number;
  /** Free pages given back at once: few, because the database notes each before that. */
  readonly #step: number;
  /**
   * Bytes of the disk that are left alone: what is already acknowledged needs some to be settled, cleared away and checkpointed. A
   * disk filled to the last byte would never recover by itself.
   */
  readonly #reserve: number;
  readonly #parts: SpaceParts;
  readonly #monotonic: () => number;
  /** Until then there is room, whatever is written. */
  #plentyUntil = Number.NEGATIVE_INFINITY;

  /** @param monotonic milliseconds */
  constructor(options: JournalOptions, parts: SpaceParts, monotonic = (): number => performance.now()) {
    const { db } = parts;
    this.#monotonic = monotonic;
    this.#parts = parts;
    this.#options = options;
    // Prepared once: they run with each commit, and to compile them takes longer than to run them.
    this.#counters = {
      page_count: db.prepare('PRAGMA page_count').pluck(),
      freelist_count: db.prepare('PRAGMA freelist_count').pluck(),
    };
    this.#pageSize = Number(db.pragma('page_size', { simple: true }));
    this.#reserve = Math.min(32 * MIB, Math.floor(diskBytes(options.path) / 8));
    this.#step = Math.max(1, Math.floor(walBytesFor(options.path) / this.#pageSize / 4));
  }

  /** Bytes in use, free pages not counted. */
  bytes(): number {
    const pages = this.#pages('page_count') - this.#pages('freelist_count');
    return this.#parts.events.log.bytes + pages * this.#pageSize - this.#parts.scrubber.heldBytes;
  }

  /** Why no more can be taken; null when it can. */
  shortage(): string | null {
    const { path, maxBytes } = this.#options;
    this.#plentyUntil = Number.NEGATIVE_INFINITY;
    const bytes = this.bytes();
    if (bytes >= maxBytes) return `${path} holds ${bytes} of at most ${maxBytes} bytes`;
    const free = this.#free();
    if (free < this.#reserve) return `the disk of ${path} has ${free} bytes left`;
    if (Math.min(maxBytes - bytes, free - this.#reserve) >= PLENTY.bytes)
      this.#plentyUntil = this.#monotonic() + PLENTY.ms;
    return null;
  }

  /** Why so many bytes cannot be set aside, or put back; null when they can: half of the reserve stays for what clears away. */
  shortageFor(bytes: number): string | null {
    const free = this.#free();
    // They are written twice, to the log of the database and to itself.
    if (free - 2 * bytes >= this.#reserve / 2) return null;
    return `the disk of ${this.#options.path} has ${free} bytes left, too few for ${bytes} more; make room on it, or drop dead letters`;
  }

  /** Gives the disk back some pages of the database that hold nothing, if it is short of space; false when there are none. */
  giveBack(): boolean {
    const before = this.#pages('freelist_count');
    if (before < this.#step || this.#free() >= this.#reserve) return false;
    try {
      this.#parts.db.pragma(`incremental_vacuum(${this.#step})`);
      // Only this shortens the file.
      this.#parts.db.pragma('wal_checkpoint(TRUNCATE)');
    } catch (error) {
      // To note it takes space itself.
      if (sqliteCode(error) !== 'SQLITE_FULL') throw error;
    }
    return this.#pages('freelist_count') < before;
  }

  /** Whether a moment ago there was so much room that there is some still; to look takes 40 µs when it is done once a commit. */
  get hadPlenty(): boolean {
    return this.#monotonic() < this.#plentyUntil;
  }

  /** Bytes of the disk that are free for this process now; costs a few microseconds. */
  #free(): number {
    const { bavail, bsize } = statfsSync(this.#options.path);
    return bavail * bsize;
  }

  #pages(counter: 'page_count' | 'freelist_count'): number {
    return Number(this.#counters[counter].get());
  }
}

/** Ids of a generation where there is room. */
const GENERATION = 65_536;

/**
 * Bytes of a segment: few enough that what is settled can go soon, and enough that there are not too many of them. On a small
 * disk half of the reserve holds all of one as dead letters: then it can go.
 */
export function segmentBytesFor({ path, maxBytes }: Pick<JournalOptions, 'path' | 'maxBytes'>): number {
  const share = Math.max(Math.min(64 * MIB, maxBytes / 16), maxBytes / 512);
  return Math.max(16 * 1024, Math.min(share, diskBytes(path) / 32));
}

/** Bytes of the database's write-ahead log before it goes into the database: a small part of a small disk. */
export function walBytesFor(path: string): number {
  return Math.min(8 * MIB, diskBytes(path) / 128);
}

/** Ids of a generation, which is written in one transaction when space is short: a small part of a small disk. */
export function generationFor({ path }: Pick<JournalOptions, 'path'>): number {
  return Math.max(1024, Math.min(GENERATION, Math.floor(diskBytes(path) / 4096)));
}

function diskBytes(path: string): number {
  const { blocks, bsize } = statfsSync(path);
  return blocks * bsize;
}
