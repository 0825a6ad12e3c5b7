import PQueue from 'p-queue';
import type { Clock } from '../core/clock.ts';

/**
 * How far a sender is known before its signature is checked; deliveries of better known senders go first. An address is
 * known after its first authentic delivery, a connection from then until a forged one.
 */
const STRANGER = 0;
const KNOWN_ADDRESS = 1;
const KNOWN_CONNECTION = 2;
type Trust = typeof STRANGER | typeof KNOWN_ADDRESS | typeof KNOWN_CONNECTION;

export interface Sender {
  readonly address: string;
  readonly trust: Trust;
}

/** Least cost of a forged delivery, bytes: for its answer, and for the code that runs. */
const PRICE = 1024 * 1024;
/** Most that an address can owe, bytes: one large delivery excludes it only for seconds. */
const ADDRESS_DEBT = 2 * 1024 * 1024;
/** Milliseconds until the budget of an address is full again. */
const ADDRESS_PERIOD = 60_000;
/** All strangers together: two budgets at once, and half a budget a second. */
const STRANGERS = 2;
const STRANGERS_PERIOD = 4000;
/** All known senders together: two budgets at once, and eight a second; by default about a quarter of a core. */
const KNOWN = 2;
const KNOWN_PERIOD = 250;
/** Addresses that are remembered: so many of strangers, and so many known ones. */
const MAX_ADDRESSES = 10_000;
/** Most deliveries of known addresses that wait for the budget; and as many of known connections. */
const MAX_WAITING = 64;
/** Bodies that are decompressed at the same time: each may take the whole limit. */
const AT_ONCE_STRANGERS = 2;
const AT_ONCE_KNOWN = 4;

/** A budget of work that refills with time. */
class Bucket {
  readonly #max: number;
  readonly #least: number;
  readonly #rate: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #left: number;
  #at: number;

  /** @param period milliseconds until it is full again @param debt bytes below 0 that it may reach */
  constructor(max: number, period: number, debt: number, clock: Pick<Clock, 'monotonic'>) {
    this.#max = max;
    this.#least = -debt;
    this.#rate = max / period;
    this.#clock = clock;
    this.#left = max;
    this.#at = clock.monotonic();
  }

  take(bytes: number): void {
    const now = this.#clock.monotonic();
    const refilled = Math.min(this.#max, this.#left + (now - this.#at) * this.#rate);
    this.#left = Math.max(this.#least, refilled - bytes);
    this.#at = now;
  }

  /** Milliseconds until it has something; 0 if it has. */
  get wait(): number {
    this.take(0);
    return this.#left > 0 ? 0 : Math.max(1, Math.ceil((1 - this.#left) / this.#rate));
  }
}

/**
 * Limits the work for deliveries that turn out to be forged. Only costly ones are counted: an uncompressed delivery of usual
 * size with an HMAC costs little more than its refusal, and is always accepted.
 *
 * Strangers have a budget for each address, and one for all of them, and are refused when either is used up. Known senders
 * have another one, which no stranger can use, and wait for it: a sender that shares its address with a forger is delayed,
 * and refused only when very many wait.
 */
export class UnverifiedWork {
  readonly #max: number;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #strangers: Bucket;
  readonly #known: Bucket;
  readonly #ofStrangers = new PQueue({ concurrency: AT_ONCE_STRANGERS });
  readonly #ofKnown = new PQueue({ concurrency: AT_ONCE_KNOWN });
  /** Budgets of strangers that have sent forged deliveries; the one that was unused for longest is first. */
  readonly #addresses = new Map<string, Bucket>();
  readonly #knownAddresses = new Set<string>();

  /** @param max bytes of an address in a minute; 0 is no bound */
  constructor(max: number, clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#max = max === 0 ? Number.MAX_SAFE_INTEGER : max;
    this.#clock = clock;
    const [strangers, known] = [STRANGERS * this.#max, KNOWN * this.#max];
    this.#strangers = new Bucket(strangers, STRANGERS_PERIOD, strangers, clock);
    this.#known = new Bucket(known, KNOWN_PERIOD, known, clock);
  }

  get addresses(): number {
    return this.#addresses.size;
  }

  /** Deliveries whose work has not begun. */
  get waiting(): number {
    return this.#ofStrangers.size + this.#ofKnown.size;
  }

  /** @param isKnown whether its connection is known */
  senderOf(address: string, isKnown: boolean): Sender {
    if (isKnown) return { address, trust: KNOWN_CONNECTION };
    return { address, trust: this.#knownAddresses.has(address) ? KNOWN_ADDRESS : STRANGER };
  }

  /** An authentic delivery has come from this address. */
  remember(address: string): void {
    this.#knownAddresses.delete(address);
    this.#knownAddresses.add(address);
    forgetFirst(this.#knownAddresses);
  }

  /** Milliseconds until the sender may send; 0 for now. */
  waitOf({ address, trust }: Sender): number {
    if (trust === STRANGER) return Math.max(this.#addresses.get(address)?.wait ?? 0, this.#strangers.wait);
    return this.#ofKnown.size < trust * MAX_WAITING ? 0 : this.#known.wait;
  }

  /** @param done called once, when the work may begin or is refused; for a known sender it waits for the budget */
  ask(sender: Sender, done: (isAllowed: boolean) => void): void {
    if (this.waitOf(sender) > 0) done(false);
    else if (sender.trust === STRANGER || this.#known.wait === 0) done(true);
    else void this.run(sender, () => Promise.resolve(done(true)));
  }

  /** Does the work, a few at a time. @returns null when the budget was used up while it waited */
  async run<T>(sender: Sender, work: () => Promise<T>): Promise<T | null> {
    const { trust } = sender;
    if (trust === STRANGER)
      return this.#ofStrangers.add(async () => (this.waitOf(sender) > 0 ? null : work()));
    const inTurn = async (): Promise<T> => {
      for (let wait = this.#known.wait; wait > 0; wait = this.#known.wait)
        await new Promise<void>((resolve) => this.#clock.after(wait, resolve));
      return work();
    };
    return this.#ofKnown.add(inTurn, { priority: trust });
  }

  /** A delivery was not authentic. @param work its cost, bytes */
  wasted({ address, trust }: Sender, work: number): void {
    const bytes = Math.max(PRICE, work);
    if (trust !== STRANGER) return this.#known.take(bytes);
    const bucket =
      this.#addresses.get(address) ?? new Bucket(this.#max, ADDRESS_PERIOD, ADDRESS_DEBT, this.#clock);
    bucket.take(bytes);
    this.#strangers.take(bytes);
    this.#addresses.delete(address);
    this.#addresses.set(address, bucket);
    forgetFirst(this.#addresses);
  }
}

/** Forgets the oldest when there are too many. */
function forgetFirst(addresses: Map<string, unknown> | Set<string>): void {
  if (addresses.size <= MAX_ADDRESSES) return;
  for (const address of addresses.keys()) {
    addresses.delete(address);
    break;
  }
}
