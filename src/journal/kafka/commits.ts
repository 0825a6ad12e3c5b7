import { setTimeout as wait } from 'node:timers/promises';
import { Bell } from '../../lib/bell.ts';
import type { Claim } from './lease.ts';
import { encodeAhead } from './commit-text.ts';
import type { Committed } from './group.ts';
import type { Membership } from './membership.ts';
import type { Settled } from './settled-offsets.ts';

/** Milliseconds between two commits, while there is something to commit; after one that has failed. */
const [PAUSE, LONG_PAUSE] = [10, 200];
/** Confirmed by the sink, and not committed: so many are sent again, at most, when the brokers cannot be reached. */
const MOST_UNNOTED = 200;

/** Commits what is settled of a claim's partitions, as soon as something is. */
export class Commits {
  readonly #claim: Claim;
  readonly #membership: Membership;
  readonly #settled: ReadonlyMap<number, Settled>;
  /** As it was committed last. */
  readonly #committed: Map<number, string>;
  #running: Promise<void> | null = null;
  #isDirty = false;
  /** Confirmed since the last commit began that has succeeded. */
  #unnoted = 0;
  readonly #bell = new Bell();

  constructor(
    claim: Claim,
    membership: Membership,
    settled: ReadonlyMap<number, Settled>,
    committed: ReadonlyMap<number, Committed>,
  ) {
    this.#claim = claim;
    this.#membership = membership;
    this.#settled = settled;
    this.#committed = new Map(Array.from(committed, ([partition, each]) => [partition, textOf(each)]));
  }

  /** A delivery is confirmed. */
  confirmed(): void {
    this.#unnoted += 1;
    this.soon();
  }

  /** Resolves when not too much is confirmed and not committed, or when the claim is over. */
  async untilNoted(signal: AbortSignal): Promise<void> {
    const isFine = (): boolean => this.#unnoted < MOST_UNNOTED || !this.#claim.isHeld;
    await this.#bell.until(isFine, signal).catch(() => undefined);
  }

  /** Lets those go on who wait until something is noted: the claim is over. */
  release(): void {
    this.#bell.ring();
  }

  soon(): void {
    this.#isDirty = true;
    this.#running ??= this.#run();
  }

  /** Resolves when what is done now has been committed, or cannot be. */
  async flush(): Promise<void> {
    this.soon();
    await this.#running;
  }

  /** The last one of the claim. */
  async finish(): Promise<void> {
    await this.#running;
    await this.#commit();
  }

  async #run(): Promise<void> {
    while (this.#isDirty && this.#claim.isHeld) {
      this.#isDirty = false;
      const isDone = await this.#commit();
      if (!isDone) this.#isDirty = true;
      await wait(isDone ? PAUSE : LONG_PAUSE);
    }
    this.#running = null;
  }

  /** @returns whether all that was done when it began is committed */
  async #commit(): Promise<boolean> {
    const confirmed = this.#unnoted;
    const offsets = new Map<number, Committed>();
    for (const [partition, { progress }] of this.#settled) {
      if (progress === null) continue;
      const next = { offset: progress.offset, text: encodeAhead(progress) };
      if (this.#committed.get(partition) !== textOf(next)) offsets.set(partition, next);
    }
    if (offsets.size > 0 && !(await this.#membership.commit(this.#claim, offsets))) return false;
    this.#unnoted -= Math.min(confirmed, this.#unnoted);
    this.#bell.ring();
    for (const [partition, each] of offsets) this.#committed.set(partition, textOf(each));
    return true;
  }
}

function textOf({ offset, text }: Committed): string {
  return `${offset} ${text}`;
}
