import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';

/** Name of a token: `admin.token`, the token in owner.json, or a browser's session. */
export type TokenName = 'config' | 'owner' | 'console';

/** Milliseconds for which an unused link works. */
export const LINK_AGE = 5 * 60_000;
/** Milliseconds of a browser's session. */
const SESSION_AGE = 12 * 3_600_000;
/** Most links, and most sessions; the oldest are removed first. */
const MOST = 100;

export function newToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Tokens of the admin API, as digests. */
export class Tokens {
  /** Whether `admin.token` is set: then other machines may reach the listener, and metrics need a token. */
  readonly isConfigured: boolean;
  readonly #fixed: readonly (readonly [TokenName, Buffer])[];
  readonly #clock: Clock;
  /** Monotonic end times by digest. */
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

  /** Name of the token in the header; null for an invalid one. */
  nameOf(authorization: string | undefined): TokenName | null {
    const given = bearer(authorization);
    for (const [name, token] of this.#fixed) if (timingSafeEqual(given, token)) return name;
    return this.#isLive(this.#sessions, given.toString('hex')) ? 'console' : null;
  }

  /** A code that opens one session, once. */
  newLink(): string {
    return this.#add(this.#links, LINK_AGE);
  }

  /** The token of a new session; null for a used, expired or unknown code. */
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
      if (to.size <= MOST) break;
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
