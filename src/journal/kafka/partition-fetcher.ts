import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Handling } from '../../core/event.ts';
import { formatTarget, parseTarget } from '../../core/route.ts';
import type { SinkLog } from '../../core/sink.ts';
import { untilAborted } from '../../lib/abort.ts';
import type { Bell } from '../../lib/bell.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Claim } from './lease.ts';
import type { Cluster, Fetched } from './cluster.ts';
import { decodeAhead } from './commit-text.ts';
import { Died, diedSince } from './dead-deliveries.ts';
import type { Entries } from './fetched-events.ts';
import type { Committed } from './group.ts';
import { keptOf, type Kept } from './record.ts';
import { Settled, type Destination } from './settled-offsets.ts';
import { PartitionWindow, type Judged } from './window.ts';

export interface ReadingOptions {
  /** Of the sink; what else reads here has a name that no sink can have. */
  readonly name: string;
  readonly group: string;
  readonly topic: string;
  readonly windowTopic: string;
  readonly deadLetterTopic: string;
  /** Milliseconds that an id is remembered. */
  readonly window: number;
  /** Body bytes that may wait here for the feed. */
  readonly maxBytes: number;
  /** Asks the sink to confirm what it holds. */
  readonly flushSink: () => void;
  /** What became of each record; for whoever keeps the window. */
  readonly onRecord?: (record: Seen) => void;
  readonly log: SinkLog;
}

/** A record that was read. */
export interface Seen extends Judged {
  readonly partition: number;
  readonly offset: number;
  /** Null for one that nobody here has written. */
  readonly kept: Kept | null;
}

/** What reading stands between. */
interface Around {
  readonly entries: Entries;
  /** Rings when the feed has taken something away. */
  readonly room: Bell;
  /** Tells the feed that there is more. */
  readonly wake: () => void;
}

/** Events in memory, at most: of those that a sink holds only the place. */
const MOST_ENTRIES = 200_000;
const FETCH_BYTES = 8 * 1024 * 1024;
/** Milliseconds that a broker waits for something new. */
export const FETCH_WAIT = 500;
const [PAUSE, LONG_PAUSE] = [200, 1000];

/**
 * Reads partitions into what a sink has in memory, and decides what of it is for the sink. Whether an event is the first with
 * its id is decided by the log before it, so that every owner decides alike.
 */
export class Reading {
  readonly #options: ReadingOptions;
  readonly #around: Around;
  /** By partition: kept while it is this process's, for it is the same again. */
  readonly #windows = new Map<number, PartitionWindow>();

  constructor(options: ReadingOptions, around: Around) {
    this.#options = options;
    this.#around = around;
  }

  /** Of which it knows what came before. */
  get partitions(): readonly number[] {
    return [...this.#windows.keys()];
  }

  /**
   * Reads what lies in the partitions of a claim, until it is over.
   * @param settled filled, by partition, with what is settled of them
   * @param committed how far the group is in them
   */
  async read(
    claim: Claim,
    settled: Map<number, Settled>,
    committed: ReadonlyMap<number, Committed>,
    reading: Cluster,
  ): Promise<void> {
    const { group, topic, log } = this.#options;
    const { partitions } = claim;
    for (const partition of this.#windows.keys())
      if (!partitions.includes(partition)) this.#windows.delete(partition);
    const unknown = partitions.filter((partition) => !committed.has(partition));
    // All that is for the sink says so: what came before it was thought of is not.
    const earliest = unknown.length === 0 ? NONE : await reading.offsets(topic, unknown, 'earliest');
    const handedOver = partitions.map((partition) => {
      const { offset, text } = committed.get(partition) ?? { offset: earliest.get(partition) ?? 0, text: '' };
      return [partition, decodeAhead(offset, text)] as const;
    });
    const positions = new Map(handedOver.map(([partition, { offset }]) => [partition, offset]));
    let oldest = Infinity;
    for (const [partition, offset] of positions) {
      try {
        const window = getOrMake(
          this.#windows,
          partition,
          () => new PartitionWindow(partition, this.#options),
        );
        const time = await window.cover(reading, offset, claim.over);
        oldest = Math.min(oldest, time ?? Infinity);
      } catch (error) {
        // It is still a member: to leave would have all others begin anew, and they it.
        if (claim.over.aborted) return;
        throw error;
      }
    }
    const isForSink = this.#options.onRecord === undefined;
    const died = isForSink ? await diedSince(reading, oldest, this.#options, claim.over) : new Died();
    for (const [partition, before] of handedOver) settled.set(partition, new Settled(before));
    while (!claim.over.aborted) {
      const { id, leaders } = await reading.topic(topic, true);
      const byLeader = Map.groupBy(partitions, (partition) => leaders[partition] ?? -1);
      const again = new AbortController();
      let isRefused = false;
      const stop = AbortSignal.any([claim.over, again.signal]);
      const loops = Array.from(byLeader, ([leader, own]) =>
        this.#follow(
          { claim, reading, leader, topic: { name: topic, id }, own, positions, settled, died },
          stop,
        )
          .catch((error: unknown) => {
            if (stop.aborted) return;
            isRefused = error instanceof MillraceError;
            if (isRefused) log.error({ group, topic, error: messageOf(error) }, 'the topic cannot be read');
            else log.warn({ group, leader, error: messageOf(error) }, 'a broker cannot be read');
          })
          .finally(() => again.abort()),
      );
      if (loops.length === 0) loops.push(untilAborted(stop));
      await Promise.all(loops);
      // That takes a person.
      const pause = isRefused ? LONG_PAUSE : PAUSE;
      await wait(pause, undefined, { signal: claim.over }).catch(() => undefined);
    }
  }

  /** Reads from one broker, for as long as it leads what is asked of it. */
  async #follow(what: Following, stop: AbortSignal): Promise<void> {
    const { claim, reading, leader, topic, own, positions } = what;
    while (!stop.aborted) {
      if (!this.#hasRoom) {
        if (this.#around.entries.count >= MOST_ENTRIES) this.#options.flushSink();
        await this.#around.room.until(() => this.#hasRoom, stop);
      }
      const from = new Map(own.map((partition) => [partition, positions.get(partition) ?? 0]));
      const all = await reading.fetch(leader, topic, from, { bytes: FETCH_BYTES, wait: FETCH_WAIT });
      if (!claim.isHeld) return;
      let isMoved = false;
      for (const fetched of all) {
        if (fetched.error === 'OFFSET_OUT_OF_RANGE') await this.#passDeleted(fetched, what);
        else if (fetched.error !== 'NONE') isMoved = true;
        else {
          this.#take(what, fetched);
          positions.set(fetched.partition, fetched.next);
        }
      }
      this.#around.wake();
      if (isMoved) return;
    }
  }

  get #hasRoom(): boolean {
    return this.#around.entries.bytes < this.#options.maxBytes && this.#around.entries.count < MOST_ENTRIES;
  }

  async #passDeleted({ partition }: Fetched, what: Following): Promise<void> {
    const { reading, topic, positions, settled } = what;
    const at = positions.get(partition) ?? 0;
    const earliest = (await reading.offsets(topic.name, [partition], 'earliest')).get(partition) ?? 0;
    const { group, log } = this.#options;
    const fields = { group, partition, from: at, to: earliest };
    positions.set(partition, earliest);
    if (earliest > at)
      return log.error(
        fields,
        'events are gone that the sink has not had: the topic has not kept them for long enough',
      );
    log.error(
      fields,
      'the log ends before what the sink has had: it was cut or made anew, and is read again',
    );
    // What was known of these offsets was of something else.
    settled.set(partition, new Settled({ offset: earliest, ahead: new Map() }));
    this.#windows.set(partition, new PartitionWindow(partition, this.#options));
  }

  #take({ claim, settled: all, died }: Following, { partition, records }: Fetched): void {
    const settled = all.get(partition);
    if (settled === undefined) return;
    const { onRecord } = this.#options;
    const window = this.#windows.get(partition);
    // All of them before the first is taken: a page that is refused is read again.
    for (const [record, kept] of records.map((each) => [each, keptOf(each)] as const)) {
      const { offset } = record;
      const place = { partition, offset };
      const judged = (kept === null ? null : window?.note(kept, record)) ?? STRANGE;
      const { verdict } = judged;
      onRecord?.({ ...place, kept, ...judged });
      const due = kept === null || verdict !== 'first' ? NOBODY : this.#destinationsOf(kept);
      // Whoever looks at each record settles each.
      const dead = kept === null ? NOBODY : died.of(place, kept.event);
      const open = settled.add(offset, onRecord === undefined ? due : EACH, dead);
      const event =
        kept === null || onRecord !== undefined || open.length === 0
          ? null
          : { ...kept.event, handling: this.#handlingOf(kept, due, open), again: kept.again, place };
      this.#around.entries.add({ claim, settled, offset, event });
    }
  }

  /** Those of this sink. */
  #destinationsOf({ handling: { only = [] } }: Kept): readonly Destination[] {
    const own = only.map(parseTarget).filter(({ sink }) => sink === this.#options.name);
    return own.map(({ destination }) => destination);
  }

  /** For those that have it still to have. */
  #handlingOf({ handling }: Kept, due: readonly Destination[], open: readonly Destination[]): Handling {
    if (open.length === due.length) return handling;
    const { name: sink } = this.#options;
    return { ...handling, only: open.map((destination) => formatTarget({ sink, destination })) };
  }
}

const NONE: ReadonlyMap<number, number> = new Map();
const NOBODY: readonly Destination[] = [];
const EACH: readonly Destination[] = [null];
/** What nobody here has written. */
const STRANGE: Judged = { verdict: 'first', ids: [] };

interface Following {
  readonly claim: Claim;
  readonly reading: Cluster;
  readonly leader: number;
  readonly topic: { readonly name: string; readonly id: string };
  readonly own: readonly number[];
  /** Where to go on, by partition. */
  readonly positions: Map<number, number>;
  readonly settled: Map<number, Settled>;
  readonly died: Died;
}
