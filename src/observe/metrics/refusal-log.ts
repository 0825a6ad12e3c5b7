import type { Clock } from '../../core/clock.ts';
import type { SinkLog } from '../../core/sink.ts';
import { Tally } from '../../lib/tally.ts';

/** Milliseconds between two lines. */
const EVERY_MS = 60_000;

/** Not logged: scanners cause these, or the shutdown. */
const NOT_LOGGED: ReadonlySet<string> = new Set(['not_found', 'method_not_allowed', 'shutting_down']);

const CLOCK = 'if these are genuine, set the clock of this machine by NTP (timedatectl shows it)';
/** What to do, by code. */
const ADVICE: Readonly<Record<string, string>> = {
  signature_invalid:
    'if these are genuine, the secret was changed at the service: put the new one in front of signing.secrets, and reload',
  timestamp_too_old: `${CLOCK}, or look for a proxy that holds requests back`,
  timestamp_too_new: CLOCK,
  address_over_budget:
    'if these are genuine, set server.trustedProxies to the number of proxies in front, or raise server.unverifiedBytes',
};

/** What to do about refused deliveries. @param codes of their answers */
export function adviceOn(codes: Readonly<Record<string, number>>): readonly string[] {
  return Object.keys(codes).flatMap((code) => ADVICE[code] ?? []);
}

/** Logs refused deliveries: the first at once, then a summary at most once a minute. */
export class RefusalLog {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #log: Pick<SinkLog, 'warn'>;
  #gathered = new Tally();
  #detail = '';
  #cancel: (() => void) | null = null;

  constructor(clock: Pick<Clock, 'after'>, log: Pick<SinkLog, 'warn'>) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @param detail in words, without parts of the body */
  add(code: string, detail: string): void {
    if (NOT_LOGGED.has(code)) return;
    this.#gathered.add(code);
    this.#detail = detail;
    if (this.#cancel === null) this.#say();
  }

  stop(): Promise<void> {
    this.#cancel?.();
    this.#cancel = null;
    if (this.#gathered.total > 0) this.#write();
    return Promise.resolve();
  }

  #say(): void {
    this.#write();
    this.#cancel = this.#clock.after(EVERY_MS, () => {
      this.#cancel = null;
      if (this.#gathered.total > 0) this.#say();
    });
  }

  #write(): void {
    const { total: refused } = this.#gathered;
    const codes = Object.fromEntries(this.#gathered);
    const advice = adviceOn(codes);
    const fields = { refused, codes, last: this.#detail, ...(advice.length === 0 ? {} : { advice }) };
    this.#gathered = new Tally();
    this.#log.warn(fields, 'deliveries refused');
  }
}
