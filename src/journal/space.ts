import { statfsSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { isDiskFull } from './sqlite-errors.ts';
import { aboutBytes } from '../lib/units.ts';

const MIB = 2 ** 20;
/** With 1 GiB free, the free space is not checked again for 100 ms: nothing can fill it in that time. */
const PLENTY = { bytes: 1024 * MIB, ms: 100 };

interface SpaceLimits {
  readonly path: string;
  readonly maxBytes: number;
}

interface SpaceParts {
  readonly db: Database.Database;
  readonly events: { readonly log: { readonly bytes: number } };
  readonly scrubber: { readonly heldBytes: number };
}

/** How many bytes the journal has, and whether there is room for more. */
export class Space {
  readonly #limits: SpaceLimits;
  readonly #counters;
  readonly #pageSize: number;
  /** Free pages given back at once: few, because each is written to the database's log first. */
  readonly #step: number;
  /** Bytes of the disk left free: acknowledged events need some to be settled, removed and checkpointed. */
  readonly #reserve: number;
  readonly #parts: SpaceParts;
  readonly #monotonic: () => number;
  /** Until then there is enough room, whatever is written. */
  #plentyUntil = Number.NEGATIVE_INFINITY;

  /** @param monotonic milliseconds */
  constructor(limits: SpaceLimits, parts: SpaceParts, monotonic = (): number => performance.now()) {
    const { db } = parts;
    this.#monotonic = monotonic;
    this.#parts = parts;
    this.#limits = limits;
    // Prepared once: they run with each commit, and compiling them takes longer than running them.
    this.#counters = {
      page_count: db.prepare('PRAGMA page_count').pluck(),
      freelist_count: db.prepare('PRAGMA freelist_count').pluck(),
    };
    this.#pageSize = Number(db.pragma('page_size', { simple: true }));
    this.#reserve = Math.min(32 * MIB, Math.floor(diskBytes(limits.path) / 8));
    this.#step = Math.max(1, Math.floor(walBytesFor(limits.path) / this.#pageSize / 4));
  }

  /** Bytes in use, free pages not counted. */
  bytes(): number {
    const pages = this.#pages('page_count') - this.#pages('freelist_count');
    return this.#parts.events.log.bytes + pages * this.#pageSize - this.#parts.scrubber.heldBytes;
  }

  /** Why no more events can be accepted; null when they can. */
  shortage(): string | null {
    const { path, maxBytes } = this.#limits;
    this.#plentyUntil = Number.NEGATIVE_INFINITY;
    const bytes = this.bytes();
    if (bytes >= maxBytes) return `${path} has ${aboutBytes(bytes)} of at most ${aboutBytes(maxBytes)}`;
    const free = this.#free();
    if (free < this.#reserve)
      return `the disk of ${path} has ${aboutBytes(free)} left, and needs ${aboutBytes(this.#reserve)}`;
    if (Math.min(maxBytes - bytes, free - this.#reserve) >= PLENTY.bytes)
      this.#plentyUntil = this.#monotonic() + PLENTY.ms;
    return null;
  }

  /** Why so many bytes cannot be set aside or appended again; null when they can. They may use half of the reserve. */
  shortageFor(bytes: number): string | null {
    const free = this.#free();
    // They are written twice: to the database's log, and to the database.
    if (free - 2 * bytes >= this.#reserve / 2) return null;
    return `the disk of ${this.#limits.path} has ${aboutBytes(free)} left, too few for ${aboutBytes(bytes)} more; make room on it, or drop dead letters`;
  }

  /** Gives some free pages of the database back to a disk that is short of space. @returns whether it did */
  giveBack(): boolean {
    const before = this.#pages('freelist_count');
    if (before < this.#step || this.#free() >= this.#reserve) return false;
    try {
      this.#parts.db.pragma(`incremental_vacuum(${this.#step})`);
      // Only this shortens the file.
      this.#parts.db.pragma('wal_checkpoint(TRUNCATE)');
    } catch (error) {
      // Giving back writes to the log first.
      if (!isDiskFull(error)) throw error;
    }
    return this.#pages('freelist_count') < before;
  }

  /** True when a recent check found plenty of room. A check takes 40 µs, which is too much for each commit. */
  get hadPlenty(): boolean {
    return this.#monotonic() < this.#plentyUntil;
  }

  /** Bytes of the disk that this process may use now. */
  #free(): number {
    const { bavail, bsize } = statfsSync(this.#limits.path);
    return bavail * bsize;
  }

  #pages(counter: 'page_count' | 'freelist_count'): number {
    return Number(this.#counters[counter].get());
  }
}

/** Ids of a generation on a large disk. */
const GENERATION = 65_536;

/**
 * Bytes of a segment: few, so that settled events can be removed soon; enough, so that there are not too many segments. On a small
 * disk half of the reserve has room for all of its events as dead letters.
 */
export function segmentBytesFor({ path, maxBytes }: SpaceLimits): number {
  const share = Math.max(Math.min(64 * MIB, maxBytes / 16), maxBytes / 512);
  return Math.max(16 * 1024, Math.min(share, diskBytes(path) / 32));
}

/** Bytes of the database's log at which it is checkpointed: a small part of a small disk. */
export function walBytesFor(path: string): number {
  return Math.min(8 * MIB, diskBytes(path) / 128);
}

/** Ids of a generation: a small part of a small disk, because one transaction writes it when space is short. */
export function generationFor({ path }: Pick<SpaceLimits, 'path'>): number {
  return Math.max(1024, Math.min(GENERATION, Math.floor(diskBytes(path) / 4096)));
}

function diskBytes(path: string): number {
  const { blocks, bsize } = statfsSync(path);
  return blocks * bsize;
}
