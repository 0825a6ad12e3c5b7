import type { Ownership } from '../../core/erasure.ts';
import type { Event } from '../../core/event.ts';
import type { EventLine } from '../../core/tail.ts';

/** An event that has just come in, without its body; snake_case as in the archive. */
export interface RecentEvent extends EventLine {
  /** Ascending number; ask for events after one you have seen. */
  readonly n: number;
  readonly outcome: 'accepted' | 'duplicate' | 'quarantined';
  /** Its seq in the journal; null without one. */
  readonly seq: number | null;
  readonly received_at: number;
}

const EVENTS = 100;

/** The newest events, in a ring. */
export class RecentEvents {
  readonly #ring: (RecentEvent | undefined)[] = [];
  #count = 0;
  /** Changes when events were forgotten: a copy of the list must be read again. */
  forgotten = 0;

  add(event: Event, outcome: RecentEvent['outcome'], seq: number | null): void {
    this.#ring[this.#count % EVENTS] = {
      n: this.#count + 1,
      outcome,
      seq,
      received_at: event.receivedAt,
      ...headOf(event),
    };
    this.#count += 1;
  }

  /** Forgets events of an erased user, and all events without a user: their bodies may name the user. */
  forget(owned: (whose: Ownership) => boolean): void {
    this.forgotten += 1;
    for (const [at, event] of this.#ring.entries()) {
      if (event === undefined) continue;
      const { team_id: team, user_id: user, client_user_id: clientUser } = event;
      const isUnsure = user === null || event.outcome === 'quarantined';
      if (isUnsure || owned({ team, user, clientUser })) this.#ring[at] = undefined;
    }
  }

  /** Newest first, only those after `n`. */
  after(n: number, limit = EVENTS): RecentEvent[] {
    const found: RecentEvent[] = [];
    const oldest = Math.max(n, this.#count - Math.min(limit, EVENTS));
    for (let at = this.#count; at > oldest; at -= 1) {
      const event = this.#ring[(at - 1) % EVENTS];
      if (event !== undefined) found.push(event);
    }
    return found;
  }
}

export function headOf(event: Event): EventLine {
  return {
    id: event.id,
    source: event.source,
    event_type: event.type,
    team_id: event.team,
    user_id: event.user,
    client_user_id: event.clientUser,
    bytes: event.body.length,
  };
}

const ATTEMPTS = 20_000;

/** An attempt to deliver an event to a sink. */
export interface RecentAttempt {
  readonly sink: string;
  readonly destination: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly outcome: 'delivered' | 'retried';
  readonly reason: string | null;
}

/** The newest attempts by the event's seq, in a ring of fixed size. */
export class RecentAttempts {
  readonly #seqs = new Float64Array(ATTEMPTS);
  readonly #attempts = Array.from({ length: ATTEMPTS }, (): RecentAttempt | undefined => undefined);
  #next = 0;

  add(seq: number, attempt: RecentAttempt): void {
    this.#seqs[this.#next] = seq;
    this.#attempts[this.#next] = attempt;
    this.#next = (this.#next + 1) % ATTEMPTS;
  }

  /** Attempts of one event, oldest first. */
  of(seq: number): RecentAttempt[] {
    const found: RecentAttempt[] = [];
    for (let n = 0; n < ATTEMPTS; n += 1) {
      const at = (this.#next + n) % ATTEMPTS;
      const attempt = this.#seqs[at] === seq ? this.#attempts[at] : undefined;
      if (attempt !== undefined) found.push(attempt);
    }
    return found;
  }

  /** After an erasure: reasons can name the user. */
  forget(): void {
    this.#attempts.fill(undefined);
  }
}
