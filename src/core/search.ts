import type { Event } from './event.ts';

/** A search among the events of the journal. */
export interface SearchQuery {
  /** A delivery id, exactly. */
  readonly id?: string | undefined;
  /** A `user_id` or `client_user_id`: a UUID in any form, any other id exactly. */
  readonly user?: string | undefined;
  /** Prefix of the event type. */
  readonly type?: string | undefined;
  /** Received at or after `since`, and before `until`: milliseconds since the epoch. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** Only events after and before these seqs. */
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  /** Types to leave out, except events that carry their own targets. */
  readonly without?: readonly string[] | undefined;
  /** Also finds `journaledAt`, which is slower: it reads back to the beginning of the commit. */
  readonly journaled?: true;
  readonly limit: number;
}

/** An event without its body. */
export interface FoundEvent extends Omit<Event, 'headers' | 'body'> {
  readonly seq: number;
  readonly bytes: number;
  /** When it was written to the journal, milliseconds since the epoch. */
  readonly journaledAt?: number;
  /** Its own targets, if it carries any. */
  readonly only?: readonly string[];
  readonly replayId?: string;
  readonly trace?: string;
}

export interface SearchResult {
  /** Newest first. */
  readonly events: readonly FoundEvent[];
  /** Events searched, and events in the journal; the first is less while the index is being built. */
  readonly searched: number;
  readonly of: number;
}
