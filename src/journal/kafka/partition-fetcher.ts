import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { formatTarget, parseTarget } from '../../core/route.ts';
import { untilAborted } from '../../lib/abort.ts';
import type { Bell } from '../../lib/bell.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Cluster, Fetched } from './cluster.ts';
import { deadDeliveriesSince, deadFor, type DeadDeliveries } from './dead-deliveries.ts';
import type { FetchedEvents } from './fetched-events.ts';
import type { Lease } from './lease.ts';
import type { FetchedEvent } from './record.ts';
import { SettledOffsets, type CommittedCheckpoint, type Destination } from './settled-offsets.ts';
import { PartitionWindow, type JudgedRecord, type WindowOptions } from './window.ts';

export interface FetcherOptions extends WindowOptions {
  /** The sink; a group of another purpose has a name that no sink can have. */
  readonly name: string;
  readonly group: string;
  readonly deadLetterTopic: string;
  /** Body bytes that may wait here for the feed. */
  readonly maxWaiting: number;
  /** Asks the sink to confirm what it holds. */
  readonly flushSink: (sink: string) => void;
  /** Called with each record, by a group that is for no sink. */
  readonly onRecord?: (record: JudgedRecord) => void;
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
        const written = await this.#window(partition).cover(this.#cluster, offset, over);
        oldest = Math.min(oldest, written ?? Infinity);
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
    const { name: sink, topic: name, group, log, flushSink } = this.#options;
    const { events, room, wake } = this.#parts;
    while (!stop.aborted) {
      if (!this.#hasRoom) {
        if (events.count >= MOST_ENTRIES) flushSink(sink);
        await room.until(() => this.#hasRoom, stop);
      }
      const from = new Map(own.map((partition) => [partition, this.#positions.get(partition) ?? 0]));
      const all = await this.#cluster.fetch(leader, { name, id }, from, FETCH);
      if (!this.#lease.isHeld) return;
      let hasMoved = false;
      for (const fetched of all) {
        const { partition, error, next } = fetched;
        if (error === 'OFFSET_OUT_OF_RANGE') await this.#skipDeleted(partition);
        else if (error !== 'NONE') {
          hasMoved = true;
          log.warn(
            { group, leader, partition, error },
            'a partition cannot be read; its leader is asked for',
          );
        } else {
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
    const isDeleted = to > from;
    const message = isDeleted
      ? 'the brokers deleted events that the sink has not had: raise retention.ms of the topic'
      : 'the log ends before the offset of the sink: it was cut or created again, and is read again';
    log.error({ group, partition, from, to }, message);
    this.#positions.set(partition, to);
    if (isDeleted) return;
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
    // Judges all before it takes the first: a page with an unreadable record is fetched again.
    for (const judged of records.map((record) => window.judge(record))) {
      const { offset } = judged;
      const event = onRecord === undefined ? this.#admit(judged, settled) : null;
      if (onRecord !== undefined) settled.add(offset, ONE);
      onRecord?.(judged);
      this.#parts.events.add({ lease, settled, offset }, event);
    }
  }

  /** The event, for the destinations of this sink for which it is not settled; null when there are none. */
  #admit(
    { partition, offset, recorded, verdict }: JudgedRecord,
    settled: SettledOffsets,
  ): Omit<FetchedEvent, 'seq'> | null {
    if (recorded === null || verdict !== 'first') {
      settled.add(offset, []);
      return null;
    }
    const { name: sink } = this.#options;
    const { event, handling, again } = recorded;
    const place = { partition, offset };
    const targets = (handling.only ?? []).map(parseTarget).filter((target) => target.sink === sink);
    const destinations = targets.map(({ destination }) => destination);
    const open = settled.add(offset, destinations, deadFor(this.#dead, place, event));
    if (open.length === 0) return null;
    const only = open.map((destination) => formatTarget({ sink, destination }));
    return { ...event, handling: { ...handling, only }, again, place };
  }

  #window(partition: number): PartitionWindow {
    return getOrMake(this.#parts.windows, partition, () => new PartitionWindow(partition, this.#options));
  }

  #offsets(partitions: readonly number[]): Promise<ReadonlyMap<number, number>> {
    return this.#cluster.offsets(this.#options.topic, partitions, 'earliest');
  }
}

/** The destination of a group that is for no sink. */
const ONE: readonly Destination[] = [null];
