import { messageOf } from '../../core/errors.ts';
import type { SinkContext } from '../../core/sink.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { Serial } from '../../lib/serial.ts';
import type { FilesOptions } from './config.ts';
import type { Part } from './part.ts';

const OPEN_FILES = 64;

/** One partition. Tasks on its open part run one at a time. */
export interface Lane {
  readonly folder: string;
  readonly serial: Serial;
  part: Part | null;
  /** Resolves when the part that was closed last is on the disk. */
  closed: Promise<void>;
  cancelTimer: () => void;
}

export interface LaneEvents {
  /** A closed part with records in it is on the disk. */
  readonly onClosed: (part: Part) => void;
  readonly onLost: (part: Part, why: string) => Promise<void>;
}

/** The partitions that are written now, each with its open part, and the files held open for them. */
export class Lanes {
  readonly #context: Pick<SinkContext, 'clock' | 'log'>;
  readonly #rotate: FilesOptions['rotate'];
  readonly #events: LaneEvents;
  readonly #openFiles: number;
  readonly #lanes = new Map<string, Lane>();
  /** Parts with an open handle, least recently used first. */
  readonly #handles = new Map<Part, Lane>();
  /** Closed parts that are not on the disk yet. */
  readonly #closing = new Map<Part, Promise<void>>();
  /** For each running call of `each`: the parts given up since its start. */
  readonly #lost = new Set<string[]>();

  constructor(
    context: Pick<SinkContext, 'clock' | 'log'>,
    rotate: FilesOptions['rotate'],
    events: LaneEvents,
    openFiles = OPEN_FILES,
  ) {
    this.#context = context;
    this.#rotate = rotate;
    this.#events = events;
    this.#openFiles = openFiles;
  }

  /** Bytes of closed parts that are not on the disk yet. */
  get closing(): number {
    let bytes = 0;
    for (const { length } of this.#closing.keys()) bytes += length;
    return bytes;
  }

  /** The lane of a folder, made if there is none. */
  of(folder: string): Lane {
    return getOrMake(this.#lanes, folder, () => {
      const part = { part: null, closed: Promise.resolve(), cancelTimer: () => undefined };
      return { folder, serial: new Serial(), ...part };
    });
  }

  /** Runs a task alone in its lane; forgets the lane once it is idle and empty, to bound the memory. */
  async run<T>(lane: Lane, task: () => Promise<T>): Promise<T> {
    const result = lane.serial.run(task);
    try {
      return await result;
    } finally {
      if (lane.part === null && lane.serial.size === 0) this.#lanes.delete(lane.folder);
    }
  }

  /**
   * Runs a task in every lane of now, in parallel, and waits until all closed parts are on the disk.
   * @returns a line for each closed part that was lost instead, with the reason
   */
  async each(task: (lane: Lane) => Promise<void>): Promise<readonly string[]> {
    const lost: string[] = [];
    this.#lost.add(lost);
    try {
      await Promise.all(Array.from(this.#lanes.values(), (lane) => this.run(lane, () => task(lane))));
      await Promise.all(this.#closing.values());
    } finally {
      this.#lost.delete(lost);
    }
    return lost;
  }

  /** Makes it the lane's part, which is closed when it is old enough. */
  assign(lane: Lane, part: Part): void {
    lane.part = part;
    lane.cancelTimer = this.#context.clock.after(this.#rotate.every, () => {
      void this.run(lane, () => (lane.part === part ? this.closePart(lane) : Promise.resolve()));
    });
  }

  isFull({ part }: Lane): boolean {
    return part !== null && part.length >= this.#rotate.bytes;
  }

  /**
   * Takes the part out of its lane and begins to close it; the next part can be written during that time. Waits for the one before,
   * so that a slow disk slows down what is added.
   */
  async closePart(lane: Lane): Promise<void> {
    const { part } = lane;
    if (part === null) return;
    this.#takeOut(lane, part);
    await lane.closed;
    lane.closed = this.#close(part).finally(() => this.#closing.delete(part));
    this.#closing.set(part, lane.closed);
  }

  /** Never rejects. */
  async #close(part: Part): Promise<void> {
    try {
      await part.close();
    } catch (error) {
      this.#context.log.warn({ path: part.path, error: messageOf(error) }, 'closing a part failed');
      if (!part.care.syncs) return this.#giveUp(part, messageOf(error));
    }
    // Empty after a failed append, on a full disk for example.
    if (part.length === 0) await part.discard().catch(() => undefined);
    else this.#events.onClosed(part);
  }

  /** Gives up an open part that another program has removed. */
  async drop(lane: Lane, part: Part): Promise<void> {
    this.#takeOut(lane, part);
    await part.release().catch(() => undefined);
    await this.#events.onLost(part, 'it was removed, replaced or truncated by another program');
  }

  /** Gives up a part that could not be synced: how much of it is on the disk is unknown. */
  async #giveUp(part: Part, why: string): Promise<void> {
    for (const lost of this.#lost) lost.push(`${part.path}: ${why}`);
    await part.discard().catch(() => undefined);
    await this.#events.onLost(part, why);
  }

  /** Notes the use of a part's handle, and releases the least recently used one when there are too many. */
  touch(part: Part, lane: Lane): void {
    this.#handles.delete(part);
    this.#handles.set(part, lane);
    const [oldest] = this.#handles;
    if (oldest === undefined || this.#handles.size <= this.#openFiles) return;
    this.#handles.delete(oldest[0]);
    void this.run(oldest[1], () => oldest[0].release().catch(() => undefined));
  }

  /** The part has released its handle by itself. */
  untouch(part: Part): void {
    this.#handles.delete(part);
  }

  #takeOut(lane: Lane, part: Part): void {
    lane.cancelTimer();
    lane.part = null;
    this.#handles.delete(part);
  }
}
