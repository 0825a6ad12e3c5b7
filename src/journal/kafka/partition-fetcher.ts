import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Handling } from '../../core/event.ts';
import { formatTarget, parseTarget } from '../../core/route.ts';
import { untilAborted } from '../../lib/abort.ts';
import type { Bell } from '../../lib/bell.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Cluster, Fetched } from './cluster.ts';
import { deadDeliveriesSince, deadFor, type DeadDeliveries } from './dead-deliveries.ts';
import type { FetchedEvents } from './fetched-events.ts';
import type { Lease } from './lease.ts';
import { recordedEventOf, type PartitionOffset, type RecordedEvent } from './record.ts';
import { SettledOffsets, type CommittedCheckpoint, type Destination } from './settled-offsets.ts';
import { PartitionWindow, type Judged, type WindowOptions } from './window.ts';

export interface FetcherOptions extends WindowOptions {
  /** The sink; a group of another purpose has a name that no sink can have. */
  readonly name: string;
  readonly group: string;
  readonly deadLetterTopic: string;
  /** Body bytes that may wait here for the feed. */
  readonly maxWaiting: number;
  /** Asks the sink to confirm what it holds. */
  readonly flushSink: () => void;
  /** Called with each record, by a group that is for no sink. */
  readonly onRecord?: (record: JudgedRecord) => void;
}

export interface JudgedRecord extends Judged, PartitionOffset {
  /** Null for a record of another program. */
  readonly recorded: RecordedEvent | null;
}

/** Where fetched records go. */
export interface FetcherParts {
  readonly windows: Map<number, PartitionWindow>;
  readonly events: FetchedEvents;
  /** Rings when the feed has read some. */
  readonly room: Bell;
  /** Called when there are more. */
  readonly wake: () => void;
}

/** Entries in memory, at most: of events that a sink holds only the offset. */
const MOST_ENTRIES = 200_000;
/** Milliseconds that a broker waits for new records. */
export const FETCH_WAIT = 500;
const FETCH = { bytes: 8 * 1024 * 1024, wait: FETCH_WAIT };
/** Milliseconds until the next try; longer when only a person can help. */
const [PAUSE, LONG_PAUSE] = [200, 1000];

/**
 * Fetches the partitions of one lease, and decides what is for the sink. Whether an event is the first with its id follows
 * from the log before it, so every owner of a partition decides alike.
 */
export class PartitionFetcher {
  readonly #options: FetcherOptions;
  readonly #parts: FetcherParts;
  readonly #cluster: Cluster;
  readonly #lease: Lease;
  /** Next offset to fetch, by partition. */
  readonly #positions = new Map<number, number>();
  /** What is settled, by partition; filled by `run`. */
  readonly settled = new Map<number, SettledOffsets>();
  #dead: DeadDeliveries = new Map();

  constructor(lease: Lease, cluster: Cluster, options: FetcherOptions, parts: FetcherParts) {
    this.#lease = lease;
    this.#cluster = cluster;
    this.#options = options;
    this.#parts = parts;
  }

  /** Fetches until the lease is over. */
  async run(): Promise<void> {
    const { over, partitions } = this.#lease;
    const checkpoints = await this.#checkpoints();
    let oldest = Infinity;
    for (const [partition, { offset }] of checkpoints)
      try {
        oldest = Math.min(
          oldest,
          (await this.#window(partition).cover(this.#cluster, offset, over)) ?? Infinity,
        );
      } catch (error) {
        // Still a member: if it left, all others would join again, and so would it.
        if (over.aborted) return;
        throw error;
      }
    if (this.#options.onRecord === undefined)
      this.#dead = await deadDeliveriesSince(this.#cluster, oldest, this.#options, over);
    for (const [partition, checkpoint] of checkpoints) {
      this.settled.set(partition, new SettledOffsets(checkpoint));
      this.#positions.set(partition, checkpoint.offset);
    }
    while (!over.aborted) {
      const pause = await this.#fetchFromLeaders(partitions);
      await wait(pause, undefined, { signal: over }).catch(() => undefined);
    }
  }

  /** Where to begin. A partition without a checkpoint has none because the sink is new: its events name their sinks. */
  async #checkpoints(): Promise<ReadonlyMap<number, CommittedCheckpoint>> {
    const { group, topic } = this.#options;
    const { partitions } = this.#lease;
    const { windows } = this.#parts;
    for (const partition of windows.keys()) if (!partitions.includes(partition)) windows.delete(partition);
    const checkpoints = new Map(await this.#cluster.group(group, topic).checkpoints(partitions));
    const fresh = partitions.filter((partition) => !checkpoints.has(partition));
    if (fresh.length === 0) return checkpoints;
    const earliest = await this.#offsets(fresh);
    for (const partition of fresh)
      checkpoints.set(partition, { offset: earliest.get(partition) ?? 0, ahead: new Map() });
    return checkpoints;
  }

  /** Fetches from all leaders until one of them has to be looked up again. @returns milliseconds to wait before that */
  async #fetchFromLeaders(partitions: readonly number[]): Promise<number> {
    const { group, topic, log } = this.#options;
    const { over } = this.#lease;
    const { id, leaders } = await this.#cluster.topic(topic, true);
    const again = new AbortController();
    const stop = AbortSignal.any([over, again.signal]);
    let pause = PAUSE;
    const loops = Array.from(
      Map.groupBy(partitions, (partition) => leaders[partition] ?? -1),
      ([leader, own]) =>
        this.#fetchFrom(leader, id, own, stop)
          .catch((error: unknown) => {
            if (stop.aborted) return;
            const fields = { group, error: messageOf(error) };
            if (error instanceof MillraceError) {
              pause = LONG_PAUSE;
              log.error({ ...fields, topic }, 'the topic cannot be read');
            } else log.warn({ ...fields, leader }, 'a broker cannot be read');
          })
          .finally(() => again.abort()),
    );
    await (loops.length === 0 ? untilAborted(stop) : Promise.all(loops));
    return pause;
  }

  /** Fetches from one broker for as long as it leads these partitions. */
  async #fetchFrom(leader: number, id: string, own: readonly number[], stop: AbortSignal): Promise<void> {
    const { topic: name, flushSink } = this.#options;
    const { events, room, wake } = this.#parts;
    while (!stop.aborted) {
      if (!this.#hasRoom) {
        if (events.count >= MOST_ENTRIES) flushSink();
        await room.until(() => this.#hasRoom, stop);
      }
      const from = new Map(own.map((partition) => [partition, this.#positions.get(partition) ?? 0]));
      const all = await this.#cluster.fetch(leader, { name, id }, from, FETCH);
      if (!this.#lease.isHeld) return;
      let hasMoved = false;
      for (const fetched of all) {
        const { partition, error, next } = fetched;
        if (error === 'OFFSET_OUT_OF_RANGE') await this.#skipDeleted(partition);
        else if (error !== 'NONE') hasMoved = true;
        else {
          this.#take(fetched);
          this.#positions.set(partition, next);
        }
      }
      wake();
      if (hasMoved) return;
    }
  }

  get #hasRoom(): boolean {
    const { events } = this.#parts;
    return events.bytes < this.#options.maxWaiting && events.count < MOST_ENTRIES;
  }

  async #skipDeleted(partition: number): Promise<void> {
    const { group, log } = this.#options;
    const from = this.#positions.get(partition) ?? 0;
    const to = (await this.#offsets([partition])).get(partition) ?? 0;
    const fields = { group, partition, from, to };
    this.#positions.set(partition, to);
    if (to > from)
      return log.error(
        fields,
        'the brokers deleted events that the sink has not had: raise retention.ms of the topic',
      );
    log.error(
      fields,
      'the log ends before the offset of the sink: it was cut or created again, and is read again',
    );
    // These offsets were those of other records.
    this.settled.set(partition, new SettledOffsets({ offset: to, ahead: new Map() }));
    this.#parts.windows.set(partition, new PartitionWindow(partition, this.#options));
  }

  #take({ partition, records }: Fetched): void {
    const settled = this.settled.get(partition);
    if (settled === undefined) return;
    const { onRecord } = this.#options;
    const lease = this.#lease;
    const window = this.#window(partition);
    // Reads all before it takes the first: a page with an unreadable record is fetched again.
    for (const [record, recorded] of records.map((each) => [each, recordedEventOf(each)] as const)) {
      const { offset } = record;
      const place = { partition, offset };
      const judged = recorded === null ? FOREIGN : window.note(recorded, record);
      const { verdict } = judged;
      if (onRecord !== undefined) {
        onRecord({ ...place, recorded, ...judged });
        settled.add(offset, ONE);
        this.#parts.events.add({ lease, settled, offset }, null);
        continue;
      }
      const due = recorded === null || verdict !== 'first' ? NONE : this.#destinationsOf(recorded);
      const dead = recorded === null ? NONE : deadFor(this.#dead, place, recorded.event);
      const open = settled.add(offset, due, dead);
      const event =
        recorded === null || open.length === 0
          ? null
          : {
              ...recorded.event,
              handling: this.#handlingFor(recorded, due, open),
              again: recorded.again,
              place,
            };
      this.#parts.events.add({ lease, settled, offset }, event);
    }
  }

  #window(partition: number): PartitionWindow {
    return getOrMake(this.#parts.windows, partition, () => new PartitionWindow(partition, this.#options));
  }

  #offsets(partitions: readonly number[]): Promise<ReadonlyMap<number, number>> {
    return this.#cluster.offsets(this.#options.topic, partitions, 'earliest');
  }

  /** The event's destinations in this sink. */
  #destinationsOf({ handling: { only = [] } }: RecordedEvent): readonly Destination[] {
    const own = only.map(parseTarget).filter(({ sink }) => sink === this.#options.name);
    return own.map(({ destination }) => destination);
  }

  /** Limits the event to the destinations for which it is not settled. */
  #handlingFor(
    { handling }: RecordedEvent,
    due: readonly Destination[],
    open: readonly Destination[],
  ): Handling {
    if (open.length === due.length) return handling;
    const { name: sink } = this.#options;
    return { ...handling, only: open.map((destination) => formatTarget({ sink, destination })) };
  }
}

const NONE: readonly Destination[] = [];
/** The destination of a group that is for no sink. */
const ONE: readonly Destination[] = [null];
/** The verdict on a record of another program. */
const FOREIGN: Judged = { verdict: 'first', ids: [] };
