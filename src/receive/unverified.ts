import PQueue from 'p-queue';
import type { Clock } from '../core/clock.ts';

/**
 * What is known of a sender before its signature is checked; those known better have their turn sooner. An address is known
 * from its first authentic delivery on, a connection until a forged one comes over it.
 */
const STRANGER = 0;
const KNOWN_ADDRESS = 1;
const KNOWN_CONNECTION = 2;
type Trust = typeof STRANGER | typeof KNOWN_ADDRESS | typeof KNOWN_CONNECTION;

export interface Sender {
  readonly address: string;
  readonly trust: Trust;
}

/** What a forged delivery costs at least, in bytes: its errors, and the code that has to be run for it. */
const PRICE = 1024 * 1024;
/** No address owes more than this, so that one delivery, however large, keeps it out for seconds only. */
const ADDRESS_DEBT = 2 * 1024 * 1024;
/** In which the budget of an address is whole again, milliseconds. */
const ADDRESS_PERIOD = 60_000;
/** All strangers together: two budgets at once, and half a one a second. */
const STRANGERS = 2;
const STRANGERS_PERIOD = 4000;
/** All known senders together: two budgets at once, and eight a second; by default that is about a quarter of a core. */
const KNOWN = 2;
const KNOWN_PERIOD = 250;
/** Addresses that are remembered, of strangers and of known ones. */
const MAX_ADDRESSES = 10_000;
/** Deliveries of a known address that wait while its budget is used up; as many again of known connections. */
const MAX_WAITING = 64;
/** Bodies that are decompressed at once: each may take the whole limit. */
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

  /** @param period in which it is refilled, milliseconds @param debt how far below 0 it may go */
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

  /** Milliseconds until something is left; 0 when something is. */
  get wait(): number {
    this.take(0);
    return this.#left > 0 ? 0 : Math.max(1, Math.ceil((1 - this.#left) / this.#rate));
  }
}

/**
 * Bounds the work for deliveries that turn out to be forged. Only costly ones are counted: an uncompressed delivery of usual
 * size with an HMAC costs little more than its refusal, and always gets through.
 *
 * Strangers have a budget for each address, and one for all of them, and are refused when either is used up. Known senders
 * have one of their own, which no stranger can use up, and wait for it: one that shares its address with a forger is
 * delayed, and refused only when very many wait.
 */
export class UnverifiedWork {
  readonly #max: number;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #strangers: Bucket;
  readonly #known: Bucket;
  readonly #ofStrangers = new PQueue({ concurrency: AT_ONCE_STRANGERS });
  readonly #ofKnown = new PQueue({ concurrency: AT_ONCE_KNOWN });
  /** Of strangers that have sent forged deliveries, the one not used for longest first. */
  readonly #addresses = new Map<string, Bucket>();
  readonly #knownAddresses = new Set<string>();

  /** @param max bytes an address may take in a minute; 0 is no bound */
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

  /** How many deliveries wait for their work to begin. */
  get waiting(): number {
    return this.#ofStrangers.size + this.#ofKnown.size;
  }

  /** @param isKnown whether its connection is */
  senderOf(address: string, isKnown: boolean): Sender {
    if (isKnown) return { address, trust: KNOWN_CONNECTION };
    return { address, trust: this.#knownAddresses.has(address) ? KNOWN_ADDRESS : STRANGER };
  }

  /** Notes that an authentic delivery has come from there. */
  remember(address: string): void {
    this.#knownAddresses.delete(address);
    this.#knownAddresses.add(address);
    forgetFirst(this.#knownAddresses);
  }

  /** How long a sender has to stay away, milliseconds; 0 when it need not. */
  waitOf({ address, trust }: Sender): number {
    if (trust === STRANGER) return Math.max(this.#addresses.get(address)?.wait ?? 0, this.#strangers.wait);
    return this.#ofKnown.size < trust * MAX_WAITING ? 0 : this.#known.wait;
  }

  /** @param done told once whether the work may begin: now, or for a known sender when there is budget */
  ask(sender: Sender, done: (isAllowed: boolean) => void): void {
    if (this.waitOf(sender) > 0) done(false);
    else if (sender.trust === STRANGER || this.#known.wait === 0) done(true);
    else void this.run(sender, () => Promise.resolve(done(true)));
  }

  /** Does the work of one that was allowed, a few at a time. @returns null when the budget was used up meanwhile */
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

  /** A delivery came to nothing. @param work what it has cost, bytes */
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

/** Keeps the newest so many. */
function forgetFirst(addresses: Map<string, unknown> | Set<string>): void {
  if (addresses.size <= MAX_ADDRESSES) return;
  for (const address of addresses.keys()) {
    addresses.delete(address);
    break;
  }
}
