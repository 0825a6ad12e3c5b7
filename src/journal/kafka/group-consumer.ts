import { setTimeout as wait } from 'node:timers/promises';
import type { JournalEvent } from '../../core/event.ts';
import type { DeadLetter, LeasedLog } from '../../core/journal.ts';
import { orAborted, unlessAborted } from '../../lib/abort.ts';
import { Bell } from '../../lib/bell.ts';
import type { Connection } from '../../vendors/kafka/connection.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import { Cluster } from './cluster.ts';
import { Commits } from './commits.ts';
import { FetchedEvents } from './fetched-events.ts';
import type { Lease } from './lease.ts';
import { Membership, type MembershipOptions } from './membership.ts';
import { FETCH_WAIT, PartitionFetcher, type FetcherOptions } from './partition-fetcher.ts';
import type { Destination } from './settled-offsets.ts';
import type { PartitionWindow } from './window.ts';

export interface ConsumerOptions extends FetcherOptions, MembershipOptions {
  readonly connection: Connection;
  /** Milliseconds for one operation. */
  readonly timeout: number;
  /** Called when this process receives an event. */
  readonly onReceived: Set<() => void>;
  /** Called before partitions go to others: resolves when what is in flight is answered, and what the sink holds is confirmed. */
  readonly handOver: (sink: string, signal: AbortSignal) => Promise<void>;
  readonly addDeadLetter: (deadLetter: Omit<DeadLetter, 'key'>) => Promise<void>;
}

const [FIRST_PAUSE, LONGEST_PAUSE] = [200, 5000];
/** Milliseconds that leaving the group may take. */
const LEAVE = 1000;

/**
 * One sink's share of the partitions, as the log that its feed reads.
 *
 * Modes: new → joining ⇄ consuming (a lease is held, its partitions are fetched) → stopped. When partitions change hands, or
 * the group was out of reach for too long, nothing new is sent, what is in flight is waited for, what is settled is
 * committed, and then it joins again.
 */
export class GroupConsumer implements LeasedLog {
  readonly #options: ConsumerOptions;
  readonly #events = new FetchedEvents();
  /** Kept from lease to lease while a partition stays here: its window is the same again. */
  readonly #windows = new Map<number, PartitionWindow>();
  readonly #listeners = new Set<(lastSeq: number) => void>();
  readonly #room = new Bell();
  readonly #abort = new AbortController();
  #running: Promise<void> | null = null;
  /** Of the lease that is held, or is being handed over. */
  #current: { readonly lease: Lease; readonly commits: Commits } | null = null;

  constructor(options: ConsumerOptions) {
    this.#options = options;
  }

  get lastSeq(): number {
    return this.#events.lastSeq;
  }

  read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    const page = this.#events.read(after, limits);
    this.#room.ring();
    return Promise.resolve(page);
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onReceived(listener: () => void): () => void {
    this.#options.onReceived.add(listener);
    return () => this.#options.onReceived.delete(listener);
  }

  /** Begins to join. */
  openCursor(): Promise<number> {
    this.#running ??= this.#run();
    return Promise.resolve(this.lastSeq);
  }

  releaseCursor(): void {
    void this.stop(AbortSignal.timeout(this.#options.session));
  }

  maySend(event: Pick<JournalEvent, 'seq'>): boolean {
    return this.#events.maySend(event.seq);
  }

  async untilCommitted(): Promise<void> {
    await this.#current?.commits.untilCommitted();
  }

  delivered(_sink: string, { seq }: Pick<JournalEvent, 'seq'>, destination: Destination): void {
    this.#events.settle(seq, destination);
    this.#current?.commits.confirmed();
  }

  moveCursor(_sink: string, seq: number): void {
    this.#events.forget(seq);
    this.#room.ring();
    this.#current?.commits.soon();
  }

  /** @throws Error when others may have the partition: they add the dead letter, and a person may have dropped it by now */
  async addDeadLetter(deadLetter: Omit<DeadLetter, 'key'>): Promise<void> {
    const { sink, event, destination } = deadLetter;
    if (!this.#events.isOwn(event.seq)) throw new Error('others may have its partition');
    await this.#options.addDeadLetter(deadLetter);
    this.delivered(sink, event, destination);
  }

  async flush(): Promise<void> {
    await this.#current?.commits.flush();
  }

  /** Commits what is settled, and leaves the group. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#abort.abort();
    this.#current?.lease.end();
    await orAborted(this.#running ?? Promise.resolve(), signal);
  }

  async #run(): Promise<void> {
    const { log, group, session, connection, timeout } = this.#options;
    const { signal } = this.#abort;
    for (let failures = 0; !signal.aborted;)
      try {
        await using control = new Cluster(connection, timeout, session);
        await using reading = new Cluster(connection, timeout, FETCH_WAIT);
        const membership = new Membership(control, this.#options);
        let owned: readonly number[] = [...this.#windows.keys()];
        while (!signal.aborted) {
          const lease = await this.#join(membership, owned, reading);
          if (lease === null) break;
          failures = 0;
          owned = lease.partitions;
          await this.#consume(lease, membership, reading);
        }
      } catch (error) {
        failures += 1;
        const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures);
        if (!signal.aborted)
          log.warn({ group, error: toFailure(error).reason, retryInMs: pause }, 'the log cannot be read');
        await wait(pause, undefined, { signal }).catch(() => undefined);
      }
  }

  async #join(membership: Membership, owned: readonly number[], reading: Cluster): Promise<Lease | null> {
    const joining = membership.join(owned);
    joining.catch(() => undefined);
    const lease = await unlessAborted<Lease | null>(joining, this.#abort.signal, null);
    if (lease === null) await membership.leave(reading, AbortSignal.timeout(LEAVE));
    return lease;
  }

  /** Fetches until the lease is over, and hands over what it can. */
  async #consume(lease: Lease, membership: Membership, reading: Cluster): Promise<void> {
    const { name, group, log, session, handOver } = this.#options;
    const wake = (): void => {
      for (const listener of this.#listeners) listener(this.lastSeq);
    };
    const alive = new AbortController();
    const kept = membership.keep(lease, alive.signal);
    log.info({ group, partitions: lease.partitions }, 'has partitions');
    const parts = { windows: this.#windows, events: this.#events, room: this.#room, wake };
    const fetcher = new PartitionFetcher(lease, reading, this.#options, parts);
    const commits = new Commits(lease, membership, fetcher.settled);
    this.#current = { lease, commits };
    // `stop` was called before there was a lease.
    if (this.#abort.signal.aborted) lease.end();
    let isMember = false;
    try {
      await fetcher.run();
      isMember = !this.#abort.signal.aborted;
    } finally {
      lease.end();
      const patience = AbortSignal.timeout(session / 2);
      // Heartbeats continue during that time.
      await orAborted(
        handOver(name, patience).catch(() => undefined),
        patience,
      );
      await commits.finish();
      lease.close();
      this.#current = null;
      alive.abort();
      await kept;
      if (!isMember) await membership.leave(reading, AbortSignal.timeout(LEAVE));
      wake();
    }
  }
}
