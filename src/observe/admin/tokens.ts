import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';

/** What let a request in: `admin.token`, the token beside the journal, or a browser's session. */
export type TokenName = 'config' | 'owner' | 'console';

/** Milliseconds a link to the console works, if nobody uses it before. */
export const LINK_AGE = 5 * 60_000;
/** Milliseconds a browser's session lasts. */
const SESSION_AGE = 12 * 3_600_000;
/** The oldest go first: whoever asks for them has a token already, but memory has an end. */
const KEPT = 100;

export function newToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Who may use the admin API. Only digests are kept of what is given out here. */
export class Tokens {
  /** Whether `admin.token` is set: the listener may then be reached from elsewhere, and metrics ask for it too. */
  readonly isConfigured: boolean;
  readonly #fixed: readonly (readonly [TokenName, Buffer])[];
  readonly #clock: Clock;
  /** Digests, and when they end by the monotonic clock. */
  readonly #links = new Map<string, number>();
  readonly #sessions = new Map<string, number>();

  constructor(fixed: { readonly config: string | null; readonly owner: string | null }, clock: Clock) {
    this.isConfigured = fixed.config !== null;
    this.#fixed = (['config', 'owner'] as const).flatMap((name) => {
      const token = fixed[name];
      return token === null ? [] : [[name, digest(token)] as const];
    });
    this.#clock = clock;
  }

  /** @param authorization the header; null when it lets nobody in */
  nameOf(authorization: string | undefined): TokenName | null {
    const given = bearer(authorization);
    for (const [name, token] of this.#fixed) if (timingSafeEqual(given, token)) return name;
    return this.#isLive(this.#sessions, given.toString('hex')) ? 'console' : null;
  }

  /** A code that opens one session, once. */
  newLink(): string {
    return this.#add(this.#links, LINK_AGE);
  }

  /** The token of a new session; null for a code that was used, is too old, or was never given out. */
  redeem(code: string): string | null {
    const key = digest(code).toString('hex');
    const isGood = this.#isLive(this.#links, key);
    this.#links.delete(key);
    return isGood ? this.#add(this.#sessions, SESSION_AGE) : null;
  }

  endSession(authorization: string | undefined): void {
    this.#sessions.delete(bearer(authorization).toString('hex'));
  }

  #add(to: Map<string, number>, age: number): string {
    const token = newToken();
    to.set(digest(token).toString('hex'), this.#clock.monotonic() + age);
    for (const oldest of to.keys()) {
      if (to.size <= KEPT) break;
      to.delete(oldest);
    }
    return token;
  }

  #isLive(among: Map<string, number>, key: string): boolean {
    const end = among.get(key);
    if (end === undefined) return false;
    if (this.#clock.monotonic() < end) return true;
    among.delete(key);
    return false;
  }
}

function bearer(authorization: string | undefined): Buffer {
  return digest(/^Bearer (.+)$/i.exec(authorization ?? '')?.[1] ?? '');
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
