import { setTimeout as wait } from 'node:timers/promises';
import type { JournalEvent } from '../../core/event.ts';
import type { DeadLetter, LeasedLog } from '../../core/journal.ts';
import { orAborted, unlessAborted } from '../../lib/abort.ts';
import { Bell } from '../../lib/bell.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import type { Claim } from './lease.ts';
import type { Cluster } from './cluster.ts';
import { Commits } from './commits.ts';
import { Entries } from './fetched-events.ts';
import { Membership } from './membership.ts';
import { FETCH_WAIT, Reading, type ReadingOptions } from './partition-fetcher.ts';
import type { Destination, Settled } from './settled-offsets.ts';

export interface ShareOptions extends ReadingOptions {
  readonly session: number;
  /** Makes a client; `patience`: milliseconds that a request may take which waits for others. */
  readonly connect: (patience: number) => Promise<Cluster>;
  /** Calls back when this process takes an event in. */
  readonly onReceived: (listener: () => void) => () => void;
  /** Before partitions go to others: what is in flight is answered, and what the sink holds is confirmed, as far as can be. */
  readonly handOver: (signal: AbortSignal) => Promise<void>;
  readonly addDeadLetter: (letter: Omit<DeadLetter, 'key'>) => Promise<void>;
}

const [FIRST_PAUSE, LONGEST_PAUSE] = [200, 5000];
/** Milliseconds that taking leave may last. */
const LEAVE = 1000;
const now = (): number => performance.now();

/** Partitions of a claim, and what is done of them. */
interface Held {
  readonly claim: Claim;
  readonly commits: Commits;
}

/**
 * One sink's share of the partitions, as the log that its feed reads.
 *
 * Modes: new → joining ⇄ having (a claim is held, and what lies in its partitions is read) → stopped. When partitions change
 * hands, or the group was out of reach for too long, nothing new is sent, what is in flight is waited for, what is done is
 * committed, and it joins again.
 */
export class Share implements LeasedLog {
  readonly #options: ShareOptions;
  readonly #entries = new Entries();
  readonly #listeners = new Set<(lastSeq: number) => void>();
  readonly #room = new Bell();
  readonly #abort = new AbortController();
  readonly #reading: Reading;
  #running: Promise<void> = Promise.resolve();
  #held: Held | null = null;
  #isStarted = false;

  constructor(options: ShareOptions) {
    this.#options = options;
    this.#reading = new Reading(options, {
      entries: this.#entries,
      room: this.#room,
      wake: () => this.#wake(),
    });
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

  onReceived(listener: () => void): () => void {
    return this.#options.onReceived(listener);
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

  async untilCommitted(): Promise<void> {
    await this.#held?.commits.untilNoted(this.#abort.signal);
  }

  delivered(_sink: string, { seq }: Pick<JournalEvent, 'seq'>, destination: Destination): void {
    this.#entries.settle(seq, destination);
    this.#held?.commits.confirmed();
  }

  moveCursor(_sink: string, seq: number): void {
    this.#entries.forget(seq);
    this.#room.ring();
    this.#held?.commits.soon();
  }

  /** @throws when others may have its partition: they make the letter, and a person may have taken theirs out by now */
  async addDeadLetter(letter: Omit<DeadLetter, 'key'>): Promise<void> {
    if (!this.#entries.mayNote(letter.event.seq)) throw new Error('others may have its partition');
    await this.#options.addDeadLetter(letter);
    this.delivered(letter.sink, letter.event, letter.destination);
  }

  async flush(): Promise<void> {
    await this.#held?.commits.flush();
  }

  /** Commits what is done, and leaves the group. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#abort.abort();
    this.#held?.claim.end();
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
        const membership = new Membership(control, { ...this.#options, now });
        let owned: readonly number[] = this.#reading.partitions;
        while (!signal.aborted) {
          const claim = await this.#join(membership, owned, reading);
          if (claim === null) break;
          failures = 0;
          owned = claim.partitions;
          await this.#have(claim, membership, reading);
        }
      } catch (error) {
        failures += 1;
        const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures);
        if (!signal.aborted)
          log.warn({ group, error: toFailure(error).reason, retryInMs: pause }, 'the log cannot be read');
        await wait(pause, undefined, { signal }).catch(() => undefined);
      } finally {
        await Promise.all(clusters.map((cluster) => cluster.close()));
      }
    }
  }

  async #join(membership: Membership, owned: readonly number[], reading: Cluster): Promise<Claim | null> {
    const joining = membership.join(owned);
    joining.catch(() => undefined);
    const claim = await unlessAborted<Claim | null>(joining, this.#abort.signal, null);
    if (claim === null) await membership.leave(reading, AbortSignal.timeout(LEAVE));
    return claim;
  }

  /** Reads what it has until that changes; then hands over what it can. */
  async #have(claim: Claim, membership: Membership, reading: Cluster): Promise<void> {
    const { group, log, session } = this.#options;
    const alive = new AbortController();
    const kept = membership.keep(claim, alive.signal);
    log.info({ group, partitions: claim.partitions }, 'has partitions');
    let commits: Commits | null = null;
    let isMember = false;
    try {
      const committed = await membership.committed(claim.partitions);
      const settled = new Map<number, Settled>();
      commits = new Commits(claim, membership, settled, committed);
      this.#held = { claim, commits };
      // Told to stop before there was anything to stop.
      if (this.#abort.signal.aborted) claim.end();
      await this.#reading.read(claim, settled, committed, reading);
      isMember = !this.#abort.signal.aborted;
    } finally {
      claim.end();
      commits?.release();
      const patience = AbortSignal.timeout(session / 2);
      // While it waits it says that it is still there.
      await orAborted(
        this.#options.handOver(patience).catch(() => undefined),
        patience,
      );
      await commits?.finish();
      claim.close();
      this.#held = null;
      alive.abort();
      await kept;
      if (!isMember) await membership.leave(reading, AbortSignal.timeout(LEAVE));
      this.#wake();
    }
  }

  #wake(): void {
    for (const listener of this.#listeners) listener(this.lastSeq);
  }
}
