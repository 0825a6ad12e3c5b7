import type { Ownership } from '../../core/erasure.ts';
import type { Event } from '../../core/event.ts';
import type { EventLine } from '../../core/tail.ts';

/** What is shown of an event that has just come in; snake_case as in the archive, never its body. */
export interface RecentEvent extends EventLine {
  /** Ascending; ask for what came after one you have seen. */
  readonly n: number;
  readonly outcome: 'accepted' | 'duplicate' | 'quarantined';
  /** Its place in the journal; null when it has none. */
  readonly seq: number | null;
  readonly received_at: number;
}

const KEPT = 100;

/** The newest events, their metadata only: a ring, so that memory does not grow with the rate. */
export class RecentEvents {
  readonly #ring: (RecentEvent | undefined)[] = [];
  #count = 0;
  /** Times something was forgotten: whoever keeps a copy of the list asks for it anew when this has changed. */
  forgotten = 0;

  add(event: Event, outcome: RecentEvent['outcome'], seq: number | null): void {
    this.#ring[this.#count % KEPT] = {
      n: this.#count + 1,
      outcome,
      seq,
      received_at: event.receivedAt,
      ...headOf(event),
    };
    this.#count += 1;
  }

  /** Forgets what is `owned`, and what names no user, or perhaps none: whose that is stood in its body. */
  forget(owned: (whose: Ownership) => boolean): void {
    this.forgotten += 1;
    for (const [at, event] of this.#ring.entries()) {
      if (event === undefined) continue;
      const { team_id: team, user_id: user, client_user_id: clientUser } = event;
      const unsure = user === null || event.outcome === 'quarantined';
      if (unsure || owned({ team, user, clientUser })) this.#ring[at] = undefined;
    }
  }

  /** Newest first, those after `n` only. */
  after(n: number, limit = KEPT): RecentEvent[] {
    const found: RecentEvent[] = [];
    const oldest = Math.max(n, this.#count - Math.min(limit, KEPT));
    for (let at = this.#count; at > oldest; at -= 1) {
      const event = this.#ring[(at - 1) % KEPT];
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
