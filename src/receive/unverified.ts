import type { Clock } from '../core/clock.ts';

interface Account {
  /** Bytes' worth of work that is left; below 0 when a delivery has cost more than was. */
  left: number;
  /** When that was so, monotonic milliseconds. */
  at: number;
}

/** What a costly delivery holds of the budget until it is known what it was; many at once then cannot overdraw it far. */
const RESERVE = 64 * 1024;
/** What a refused one costs at least: its errors, and the code that has to be run for it. */
const PRICE = 1024 * 1024;
/** No address owes more than this, so that one delivery, however large, keeps it out for seconds only. */
const MAX_DEBT = 2 * 1024 * 1024;
/** In which a budget that is used up is whole again, milliseconds. */
const PERIOD = 60_000;
/** Addresses that are remembered. Who has more of them than that is not stopped by counting addresses. */
const MAX_ADDRESSES = 10_000;

/**
 * Bounds what is done for deliveries that turn out to be forged, by client address. Only costly ones are counted, and only
 * they are refused when the budget is used up: an uncompressed delivery of usual size with an HMAC costs little more than
 * its refusal, and always gets through. Authentic deliveries give back what they took and more, so that a sender which
 * shares its address with an attacker keeps it open by sending.
 */
export class UnverifiedWork {
  readonly #max: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Addresses that have not all of their budget, the one not touched for longest first. */
  readonly #accounts = new Map<string, Account>();

  /** @param max bytes an address may take in a minute; 0 is no bound */
  constructor(max: number, clock: Pick<Clock, 'monotonic'>) {
    this.#max = max;
    this.#clock = clock;
  }

  get addresses(): number {
    return this.#accounts.size;
  }

  /** Begins a costly delivery. @returns 0, or how long its address has to wait, milliseconds */
  begin(address: string): number {
    if (this.#max === 0) return 0;
    const { left } = this.#change(address, 0);
    if (left <= 0) return Math.max(1, Math.ceil(((1 - left) * PERIOD) / this.#max));
    this.#change(address, -RESERVE);
    return 0;
  }

  /** A delivery that was begun is authentic, and gives back as much as a refused one costs. */
  verified(address: string): void {
    this.#change(address, RESERVE + PRICE);
  }

  /** A delivery that was begun came to nothing. @param work what it has cost, bytes */
  wasted(address: string, work: number): void {
    this.#change(address, RESERVE - Math.max(PRICE, work));
  }

  /** One that was begun could not be looked at, for reasons of our own. */
  released(address: string): void {
    this.#change(address, RESERVE);
  }

  #change(address: string, by: number): Account {
    const at = this.#clock.monotonic();
    const before = this.#accounts.get(address) ?? { left: this.#max, at };
    const refilled = before.left + ((at - before.at) * this.#max) / PERIOD;
    const account = { left: Math.max(-MAX_DEBT, Math.min(this.#max, refilled + by)), at };
    this.#accounts.delete(address);
    if (account.left === this.#max) return account;
    this.#accounts.set(address, account);
    if (this.#accounts.size > MAX_ADDRESSES)
      for (const oldest of this.#accounts.keys()) {
        this.#accounts.delete(oldest);
        break;
      }
    return account;
  }
}
