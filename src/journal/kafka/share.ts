import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import type { JournalEvent } from '../../core/event.ts';
import type { DeadLetter, EventLog } from '../../core/journal.ts';
import { parseTarget } from '../../core/route.ts';
import type { SinkLog } from '../../core/sink.ts';
import { orAborted } from '../../lib/abort.ts';
import { Bell } from '../../lib/bell.ts';
import { toFailure } from '../../sinks/kafka/failure.ts';
import { decodeDone, encodeDone, type Claim, type Progress } from './claim.ts';
import type { Cluster, Committed, Fetched } from './cluster.ts';
import { Entries } from './entries.ts';
import { Membership } from './membership.ts';
import type { Verdict } from './ids.ts';
import { keptOf, type Kept } from './record.ts';
import { idsAt, PartitionWindow, type IdAt } from './window.ts';

export interface ShareOptions {
  /** Of the sink; what else reads here has a name that no sink can have. */
  readonly name: string;
  readonly group: string;
  readonly topic: string;
  readonly windowTopic: string;
  readonly session: number;
  /** Milliseconds that an id is remembered. */
  readonly window: number;
  /** Body bytes that may wait here for the feed. */
  readonly maxBytes: number;
  /** Makes a client; `patience`: milliseconds that a request may take which waits for others. */
  readonly connect: (patience: number) => Promise<Cluster>;
  /** Before partitions go to others: what is in flight is answered, and what the sink holds is confirmed, as far as can be. */
  readonly handOver: (signal: AbortSignal) => Promise<void>;
  /** Asks the sink to confirm what it holds. */
  readonly flushSink: () => void;
  readonly addDeadLetter: (letter: Omit<DeadLetter, 'key'>) => Promise<void>;
  /** What became of each record; for whoever keeps the window. */
  readonly onRecord?: (record: Seen) => void;
  readonly log: SinkLog;
}

/** A record that was read. */
export interface Seen {
  readonly partition: number;
  readonly offset: number;
  /** Null for one that nobody here has written. */
  readonly kept: Kept | null;
  readonly ids: readonly IdAt[];
  readonly verdict: Verdict;
}

/** Events in memory, at most: of those that a sink holds only the place. */
const MOST_ENTRIES = 200_000;
const [FETCH_BYTES, FETCH_WAIT] = [8 * 1024 * 1024, 500];
const [FIRST_PAUSE, LONGEST_PAUSE] = [200, 5000];
/** Milliseconds between two commits, while there is something to commit. */
const COMMIT_PAUSE = 10;
/** Confirmed by the sink, and not committed: so many are sent again, at most, when the brokers cannot be reached. */
const MOST_UNNOTED = 200;
/** Milliseconds that taking leave may last. */
const LEAVE = 1000;
const now = (): number => performance.now();

/**
 * One sink's share of the partitions, as the log that its feed reads.
 *
 * Modes: new → joining ⇄ having (a claim is held, and what lies in its partitions is read) → stopped. When partitions change
 * hands, or the group was out of reach for too long, nothing new is sent, what is in flight is waited for, what is done is
 * committed, and it joins again.
 *
 * Whether an event is the first with its id is decided by the log before it, so that every owner decides alike.
 */
export class Share implements EventLog {
  readonly #options: ShareOptions;
  readonly #entries = new Entries();
  readonly #listeners = new Set<(lastSeq: number) => void>();
  readonly #room = new Bell();
  readonly #abort = new AbortController();
  /** By partition: kept while it is this process's, for it is the same again. */
  readonly #windows = new Map<number, PartitionWindow>();
  #running: Promise<void> = Promise.resolve();
  #membership: Membership | null = null;
  #claim: Claim | null = null;
  /** Everything before it is done, by partition of the claim. */
  #floors = new Map<number, number>();
  #committed = new Map<number, string>();
  #committing: Promise<void> | null = null;
  #isDirty = false;
  #isStarted = false;
  /** Confirmed since the last commit began that has succeeded. */
  #unnoted = 0;
  readonly #notedBell = new Bell();

  constructor(options: ShareOptions) {
    this.#options = options;
  }

  /** Partitions it has now. */
  get partitions(): readonly number[] {
    return this.#claim?.isHeld === true ? this.#claim.partitions : [];
  }

  get lastSeq(): number {
    return this.#entries.lastSeq;
  }

  read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    const page = this.#entries.read(after, limits);
    this.#room.ring();
    return Promise.resolve(page);
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Begins to join. */
  openCursor(): Promise<number> {
    const { lastSeq } = this;
    if (!this.#isStarted) {
      this.#isStarted = true;
      this.#running = this.#run();
    }
    return Promise.resolve(lastSeq);
  }

  releaseCursor(): void {
    void this.stop(AbortSignal.timeout(this.#options.session));
  }

  maySend(event: Pick<JournalEvent, 'seq'>): boolean {
    return this.#entries.maySend(event.seq);
  }

  async noted(): Promise<void> {
    const isFine = (): boolean => this.#unnoted < MOST_UNNOTED || this.#claim?.isHeld !== true;
    await this.#notedBell.until(isFine, this.#abort.signal).catch(() => undefined);
  }

  delivered(_sink: string, { seq }: Pick<JournalEvent, 'seq'>): void {
    this.#entries.settle(seq);
    this.#unnoted += 1;
    this.#commitSoon();
  }

  moveCursor(_sink: string, seq: number): void {
    this.#entries.forget(seq, ({ partition, offset, claim }) => {
      if (claim === this.#claim) this.#floors.set(partition, offset + 1);
    });
    this.#room.ring();
    this.#commitSoon();
  }

  async addDeadLetter(letter: Omit<DeadLetter, 'key'>): Promise<void> {
    await this.#options.addDeadLetter(letter);
    this.delivered(letter.sink, letter.event);
  }

  async flush(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#commitSoon();
    void this.#committing?.then(resolve);
    if (this.#committing === null) resolve();
    await promise;
  }

  /** Commits what is done, and leaves the group. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#abort.abort();
    this.#claim?.end();
    await orAborted(this.#running, signal);
  }

  async #run(): Promise<void> {
    const { log, group, session } = this.#options;
    const { signal } = this.#abort;
    for (let failures = 0; !signal.aborted;) {
      const clusters: Cluster[] = [];
      try {
        const control = await this.#options.connect(session);
        clusters.push(control);
        const reading = await this.#options.connect(FETCH_WAIT);
        clusters.push(reading);
        this.#membership = new Membership(control, { ...this.#options, now });
        let owned: readonly number[] = [...this.#windows.keys()];
        while (!signal.aborted) {
          const claim = await this.#join(this.#membership, owned, reading);
          if (claim === null) break;
          failures = 0;
          owned = claim.partitions;
          await this.#have(claim, this.#membership, reading);
        }
      } catch (error) {
        failures += 1;
        const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures);
        if (!signal.aborted)
          log.warn({ group, error: toFailure(error).reason, retryInMs: pause }, 'the log cannot be read');
        await wait(pause, undefined, { signal }).catch(() => undefined);
      } finally {
        this.#membership = null;
        await Promise.all(clusters.map((cluster) => cluster.close()));
      }
    }
  }

  async #join(membership: Membership, owned: readonly number[], reading: Cluster): Promise<Claim | null> {
    const stopped = Promise.withResolvers<null>();
    const stop = (): void => stopped.resolve(null);
    this.#abort.signal.addEventListener('abort', stop, { once: true });
    const joining = membership.join(owned);
    const claim = await Promise.race([joining, stopped.promise]);
    this.#abort.signal.removeEventListener('abort', stop);
    joining.catch(() => undefined);
    if (claim === null) await membership.leave(reading, AbortSignal.timeout(LEAVE));
    return claim;
  }

  /** Reads what it has until that changes; then hands over what it can. */
  async #have(claim: Claim, membership: Membership, reading: Cluster): Promise<void> {
    const { group, log, session } = this.#options;
    const alive = new AbortController();
    const kept = membership.keep(claim, alive.signal);
    this.#claim = claim;
    this.#floors = new Map();
    this.#committed = new Map();
    this.#unnoted = 0;
    for (const partition of this.#windows.keys())
      if (!claim.partitions.includes(partition)) this.#windows.delete(partition);
    log.info({ group, partitions: claim.partitions }, 'has partitions');
    let isMember = false;
    try {
      await this.#readAll(claim, membership, reading);
      isMember = !this.#abort.signal.aborted;
    } finally {
      claim.end();
      this.#notedBell.ring();
      const patience = AbortSignal.timeout(session / 2);
      // While it waits it says that it is still there.
      await orAborted(
        this.#options.handOver(patience).catch(() => undefined),
        patience,
      );
      await this.#commitAll(claim, membership);
      claim.close();
      this.#claim = null;
      alive.abort();
      await kept;
      if (!isMember) await membership.leave(reading, AbortSignal.timeout(LEAVE));
      this.#wake();
    }
  }

  async #readAll(claim: Claim, membership: Membership, reading: Cluster): Promise<void> {
    const { topic } = this.#options;
    const { partitions } = claim;
    const committed = await membership.committed(partitions);
    const unknown = partitions.filter((partition) => !committed.has(partition));
    // All that is for the sink says so: what came before it was thought of is not.
    const earliest = unknown.length === 0 ? NONE : await reading.offsets(topic, unknown, 'earliest');
    const done = new Map<number, Progress>();
    const positions = new Map<number, number>();
    for (const partition of partitions) {
      const { offset, text } = committed.get(partition) ?? { offset: earliest.get(partition) ?? 0, text: '' };
      if (committed.has(partition)) this.#committed.set(partition, `${offset} ${text}`);
      done.set(partition, decodeDone(offset, text));
      positions.set(partition, offset);
    }
    for (const [partition, offset] of positions) {
      let window = this.#windows.get(partition);
      if (window === undefined)
        this.#windows.set(
          partition,
          (window = new PartitionWindow(partition, { ...this.#options, now: Date.now })),
        );
      await window.cover(reading, offset, claim.over);
    }
    while (!claim.over.aborted) {
      const { id, leaders } = await reading.topic(topic, true);
      const byLeader = Map.groupBy(partitions, (partition) => leaders[partition] ?? -1);
      const again = new AbortController();
      const stop = AbortSignal.any([claim.over, again.signal]);
      const loops = Array.from(byLeader, ([leader, own]) =>
        this.#follow({ claim, reading, leader, topic: { name: topic, id }, own, positions, done }, stop)
          .catch((error: unknown) => {
            const { group, log } = this.#options;
            if (!stop.aborted)
              log.warn({ group, leader, error: messageOf(error) }, 'a broker cannot be read');
          })
          .finally(() => again.abort()),
      );
      if (loops.length === 0)
        loops.push(new Promise((resolve) => stop.addEventListener('abort', () => resolve(), { once: true })));
      await Promise.all(loops);
      await wait(FIRST_PAUSE, undefined, { signal: claim.over }).catch(() => undefined);
    }
  }

  /** Reads from one broker, for as long as it leads what is asked of it. */
  async #follow(what: Following, stop: AbortSignal): Promise<void> {
    const { claim, reading, leader, topic, own, positions, done } = what;
    while (!stop.aborted) {
      if (!this.#hasRoom) {
        if (this.#entries.count >= MOST_ENTRIES) this.#options.flushSink();
        await this.#room.until(() => this.#hasRoom, stop);
      }
      const from = new Map(own.map((partition) => [partition, positions.get(partition) ?? 0]));
      const all = await reading.fetch(leader, topic, from, { bytes: FETCH_BYTES, wait: FETCH_WAIT });
      if (!claim.isHeld) return;
      let isMoved = false;
      for (const fetched of all) {
        if (fetched.error === 'OFFSET_OUT_OF_RANGE') await this.#passDeleted(fetched, what);
        else if (fetched.error !== 'NONE') isMoved = true;
        else {
          const { partition } = fetched;
          this.#take(claim, fetched, done.get(partition) ?? { offset: 0, done: [] });
          positions.set(partition, fetched.next);
        }
      }
      this.#wake();
      if (isMoved) return;
    }
  }

  get #hasRoom(): boolean {
    return this.#entries.bytes < this.#options.maxBytes && this.#entries.count < MOST_ENTRIES;
  }

  async #passDeleted({ partition }: Fetched, { reading, topic, positions }: Following): Promise<void> {
    const at = positions.get(partition) ?? 0;
    const earliest = (await reading.offsets(topic.name, [partition], 'earliest')).get(partition) ?? 0;
    const { group, log } = this.#options;
    log.error(
      { group, partition, from: at, to: earliest },
      'events are gone that the sink has not had: the topic has not kept them for long enough',
    );
    positions.set(partition, earliest);
  }

  #take(claim: Claim, { partition, records }: Fetched, { done }: Progress): void {
    const { name, onRecord } = this.#options;
    const window = this.#windows.get(partition);
    let stretch = 0;
    for (const record of records) {
      const { offset } = record;
      const kept = keptOf(record);
      const ids = kept === null ? [] : idsAt(kept, record);
      const verdict = kept === null ? 'first' : (window?.note(kept, ids) ?? 'first');
      onRecord?.({ partition, offset, kept, ids, verdict });
      while ((done[stretch]?.to ?? Infinity) <= offset) stretch += 1;
      const isDone = (done[stretch]?.from ?? Infinity) <= offset;
      const targets =
        kept === null || verdict !== 'first' || isDone
          ? 0
          : (kept.handling.only ?? []).filter((target) => parseTarget(target).sink === name).length;
      const event =
        kept === null || targets === 0 ? null : { ...kept.event, handling: kept.handling, again: kept.again };
      this.#entries.add(claim, partition, offset, event, targets);
    }
  }

  #wake(): void {
    for (const listener of this.#listeners) listener(this.lastSeq);
  }

  #commitSoon(): void {
    this.#isDirty = true;
    const [claim, membership] = [this.#claim, this.#membership];
    if (this.#committing !== null || claim === null || membership === null) return;
    this.#committing = (async () => {
      while (this.#isDirty && claim.isHeld) {
        this.#isDirty = false;
        const isDone = await this.#commit(claim, membership);
        if (!isDone) this.#isDirty = true;
        await wait(isDone ? COMMIT_PAUSE : FIRST_PAUSE);
      }
      this.#committing = null;
    })();
  }

  async #commitAll(claim: Claim, membership: Membership): Promise<void> {
    await this.#committing;
    await this.#commit(claim, membership);
  }

  /** @returns whether all that was done when it began is committed */
  async #commit(claim: Claim, membership: Membership): Promise<boolean> {
    const progress = this.#entries.progress(claim);
    const confirmed = this.#unnoted;
    const offsets = new Map<number, Committed>();
    for (const partition of claim.partitions) {
      const found = progress.get(partition);
      const floor = this.#floors.get(partition);
      if (found === undefined && floor === undefined) continue;
      const offset = found?.offset ?? floor ?? 0;
      const text = encodeDone({ offset, done: found?.done ?? [] });
      if (this.#committed.get(partition) !== `${offset} ${text}`) offsets.set(partition, { offset, text });
    }
    if (offsets.size > 0 && !(await membership.commit(claim, offsets))) return false;
    this.#unnoted -= Math.min(confirmed, this.#unnoted);
    this.#notedBell.ring();
    for (const [partition, { offset, text }] of offsets) this.#committed.set(partition, `${offset} ${text}`);
    return true;
  }
}

const NONE: ReadonlyMap<number, number> = new Map();

interface Following {
  readonly claim: Claim;
  readonly reading: Cluster;
  readonly leader: number;
  readonly topic: { readonly name: string; readonly id: string };
  readonly own: readonly number[];
  /** Where to go on, by partition. */
  readonly positions: Map<number, number>;
  readonly done: ReadonlyMap<number, Progress>;
}
