import type { Clock } from '../../core/clock.ts';
import type { Event } from '../../core/event.ts';
import type { EventLine, TailOutcome, TailRequest } from '../../core/tail.ts';
import { headOf } from './recent.ts';

/** What has happened, as it is kept for a watcher. */
export interface TailEntry {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly outcome: TailOutcome;
  /** Null for a request of which nothing is believed. */
  readonly event: EventLine | null;
  readonly sink: string | null;
  readonly destination: string | null;
  /** From receipt to now; null where that says nothing. */
  readonly ms: number | null;
  readonly code: string | null;
  readonly reason: string | null;
  /** Only for those who asked for bodies. */
  readonly body: Buffer | null;
}

/** What a hook tells beside the event. */
type Told = Partial<Pick<TailEntry, 'sink' | 'destination' | 'ms' | 'code' | 'reason'>>;

/** What one watcher has not been sent yet is at most this; beyond it all of that is left out, and counted. */
const LIMITS = { lines: 2000, bytes: 8 * 2 ** 20 };

/** One who watches. Lines wait here until they are taken. */
export class Watcher {
  readonly #request: TailRequest;
  #lines: TailEntry[] = [];
  #bytes = 0;
  #lost = 0;
  #wake: (() => void) | null = null;

  constructor(request: TailRequest) {
    this.#request = request;
  }

  wants(outcome: TailOutcome, event: EventLine | null, sink: string | null): boolean {
    return isWanted(this.#request, outcome, event, sink);
  }

  get wantsBodies(): boolean {
    return this.#request.bodies;
  }

  add(entry: TailEntry): void {
    const bytes = entry.body?.length ?? 0;
    if (this.#lines.length >= LIMITS.lines || this.#bytes + bytes > LIMITS.bytes) this.forget();
    this.#lines.push(entry);
    this.#bytes += bytes;
    this.#wake?.();
    this.#wake = null;
  }

  /** The oldest lines that wait, and how many were left out before them. */
  take(limit: number): { readonly lost: number; readonly lines: readonly TailEntry[] } {
    const lost = this.#lost;
    const lines = this.#lines.splice(0, limit);
    for (const { body } of lines) this.#bytes -= body?.length ?? 0;
    this.#lost = 0;
    return { lost, lines };
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0 && this.#lost === 0;
  }

  /** Leaves out all that waits. */
  forget(): void {
    this.#lost += this.#lines.length;
    this.#lines = [];
    this.#bytes = 0;
  }

  /** Calls back once there is something to take. */
  onMore(wake: () => void): void {
    if (this.isEmpty) this.#wake = wake;
    else wake();
  }
}

/** Tells watchers what happens. While nobody watches it costs whoever calls it the look at `isWatched`. */
export class Tail {
  readonly #clock: Clock;
  readonly #watchers = new Set<Watcher>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  get size(): number {
    return this.#watchers.size;
  }

  /** @returns what ends it */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** @param event null for a request of which nothing is believed */
  tell(outcome: TailOutcome, event: Event | null, told: Told = {}): void {
    const { sink = null, destination = null, ms = null, code = null, reason = null } = told;
    const head = event === null ? null : headOf(event);
    // As in the archive, until it is about a sink.
    const at = event === null || sink !== null ? this.#clock.now() : event.receivedAt;
    const entry = { at, outcome, event: head, sink, destination, ms, code, reason, body: null };
    for (const watcher of this.#watchers) {
      if (!watcher.wants(outcome, head, sink)) continue;
      // A copy: the memory of a request is used again.
      const body = watcher.wantsBodies && event !== null ? Buffer.from(event.body) : null;
      watcher.add(body === null ? entry : { ...entry, body });
    }
  }

  /** A user was erased: what waits could name them. */
  forget(): void {
    for (const watcher of this.#watchers) watcher.forget();
  }
}

/** Whether a line about this is asked for. */
export function isWanted(
  { outcomes, sinks, types, users }: TailRequest,
  outcome: TailOutcome,
  event: EventLine | null,
  sink: string | null,
): boolean {
  if (outcomes.length > 0 && !outcomes.includes(outcome)) return false;
  if (sinks.length > 0 && (sink === null || !sinks.includes(sink))) return false;
  if (event === null) return types.length === 0 && users.length === 0;
  const { event_type: type, user_id: user, client_user_id: clientUser } = event;
  if (types.length > 0 && !types.some((prefix) => type.startsWith(prefix))) return false;
  return users.length === 0 || users.some((id) => id === user || id === clientUser);
}
