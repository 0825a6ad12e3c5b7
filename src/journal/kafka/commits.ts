import { setTimeout as wait } from 'node:timers/promises';
import { Bell } from '../../lib/bell.ts';
import { encodeDone, type Claim } from './claim.ts';
import type { Entries } from './entries.ts';
import type { Committed } from './groups.ts';
import type { Membership } from './membership.ts';

/** Milliseconds between two commits, while there is something to commit; after one that has failed. */
const [PAUSE, LONG_PAUSE] = [10, 200];
/** Confirmed by the sink, and not committed: so many are sent again, at most, when the brokers cannot be reached. */
const MOST_UNNOTED = 200;

/** Commits what is done of a claim's partitions, as soon as something is. */
export class Commits {
  readonly #entries: Entries;
  readonly #claim: Claim;
  readonly #membership: Membership;
  /** Everything before it is done, by partition. */
  readonly #floors = new Map<number, number>();
  /** As it was committed last. */
  readonly #committed: Map<number, string>;
  #running: Promise<void> | null = null;
  #isDirty = false;
  /** Confirmed since the last commit began that has succeeded. */
  #unnoted = 0;
  readonly #bell = new Bell();

  constructor(
    entries: Entries,
    claim: Claim,
    membership: Membership,
    committed: ReadonlyMap<number, Committed>,
  ) {
    this.#entries = entries;
    this.#claim = claim;
    this.#membership = membership;
    this.#committed = new Map(Array.from(committed, ([partition, each]) => [partition, textOf(each)]));
  }

  /** A delivery is confirmed. */
  confirmed(): void {
    this.#unnoted += 1;
    this.soon();
  }

  /** Everything up to an offset is done. */
  passed(partition: number, offset: number): void {
    this.#floors.set(partition, offset + 1);
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
    const progress = this.#entries.progress(this.#claim);
    const confirmed = this.#unnoted;
    const offsets = new Map<number, Committed>();
    for (const partition of this.#claim.partitions) {
      const found = progress.get(partition);
      const floor = this.#floors.get(partition);
      if (found === undefined && floor === undefined) continue;
      const offset = found?.offset ?? floor ?? 0;
      const next = { offset, text: encodeDone({ offset, done: found?.done ?? [] }) };
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
