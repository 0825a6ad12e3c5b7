import type { Clock } from '../../core/clock.ts';
import type { Event } from '../../core/event.ts';
import type { EventLine, TailOutcome, TailRequest } from '../../core/tail.ts';
import { headOf } from './recent.ts';

/** What a hook knows beside the event; null without a meaning. */
interface TailDetails {
  readonly sink: string | null;
  readonly destination: string | null;
  /** Milliseconds since receipt. */
  readonly ms: number | null;
  readonly code: string | null;
  readonly reason: string | null;
}

/** Something that happened to a delivery. */
export interface TailEntry extends TailDetails {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly outcome: TailOutcome;
  /** Null for a refused request, whose contents are not verified. */
  readonly event: EventLine | null;
  /** Only for watchers that asked for bodies. */
  readonly body: Buffer | null;
}

const NO_DETAILS: TailDetails = { sink: null, destination: null, ms: null, code: null, reason: null };
/** Entries and body bytes that wait for one watcher; beyond that all of them are dropped, and counted. */
const MOST_WAITING = { entries: 2000, bytes: 8 * 2 ** 20 };

/** The queue of one reader of the tail. */
export class Watcher {
  readonly request: TailRequest;
  #entries: TailEntry[] = [];
  #bytes = 0;
  #lost = 0;
  #wake: (() => void) | null = null;

  constructor(request: TailRequest) {
    this.request = request;
  }

  add(entry: TailEntry): void {
    const bytes = entry.body?.length ?? 0;
    if (this.#entries.length >= MOST_WAITING.entries || this.#bytes + bytes > MOST_WAITING.bytes)
      this.forget();
    this.#entries.push(entry);
    this.#bytes += bytes;
    this.#wake?.();
    this.#wake = null;
  }

  /** Removes the oldest entries. @returns them, and how many were dropped before */
  take(limit: number): { readonly lost: number; readonly entries: readonly TailEntry[] } {
    const lost = this.#lost;
    const entries = this.#entries.splice(0, limit);
    for (const { body } of entries) this.#bytes -= body?.length ?? 0;
    this.#lost = 0;
    return { lost, entries };
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0 && this.#lost === 0;
  }

  /** Drops all waiting entries. */
  forget(): void {
    this.#lost += this.#entries.length;
    this.#entries = [];
    this.#bytes = 0;
  }

  /** Calls back when there is something to take. */
  onMore(wake: () => void): void {
    if (this.isEmpty) this.#wake = wake;
    else wake();
  }
}

/** Passes entries to watchers. Callers check `isWatched` first, which is all it costs without watchers. */
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

  /** @returns a function that ends it */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** @param event null for a refused request */
  add(outcome: TailOutcome, event: Event | null, some: Partial<TailDetails> = {}): void {
    const details = { ...NO_DETAILS, ...some };
    const head = event === null ? null : headOf(event);
    // The time of receipt, as in the archive, unless it is about a sink.
    const at = event === null || details.sink !== null ? this.#clock.now() : event.receivedAt;
    const entry = { at, outcome, event: head, ...details, body: null };
    for (const watcher of this.#watchers) {
      const { request } = watcher;
      if (!isWanted(request, outcome, head, details.sink)) continue;
      // A copy: the memory of a request is reused.
      const body = request.bodies && event !== null ? Buffer.from(event.body) : null;
      watcher.add(body === null ? entry : { ...entry, body });
    }
  }

  /** After an erasure: waiting entries can name the user. */
  forget(): void {
    for (const watcher of this.#watchers) watcher.forget();
  }
}

/** Whether a request asks for an entry. */
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
