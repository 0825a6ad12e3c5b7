/** What a person looks for among the events of the journal; what is left out takes all. */
export interface SearchQuery {
  /** A delivery id, exactly. */
  readonly id?: string | undefined;
  /** A `user_id` or `client_user_id`: a UUID however it is written, as erasures take it; any other exactly. */
  readonly user?: string | undefined;
  /** How the event type begins. */
  readonly type?: string | undefined;
  /** Received at or after, and before: milliseconds since the epoch. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** Only events after and before these seqs. */
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  /** Types whose events are passed over, but for those that say themselves where they go. */
  readonly without?: readonly string[] | undefined;
  /** Also says when each was written to the journal, which takes reading back to the beginning of its commit. */
  readonly journaled?: true;
  readonly limit: number;
}

/** An event that was found: its envelope and its place, never its body. */
export interface FoundEvent {
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly team: string | null;
  readonly user: string | null;
  readonly clientUser: string | null;
  readonly bytes: number;
  /** Milliseconds since the epoch: when it was read off the wire, and when it was written to the journal, where asked for. */
  readonly receivedAt: number;
  readonly journaledAt?: number;
  /** Its targets, where it says them itself. */
  readonly only?: readonly string[];
  readonly replayId?: string;
  readonly trace?: string;
}

export interface SearchResult {
  /** Newest first. */
  readonly events: readonly FoundEvent[];
  /** Events that were looked through, of those that the journal has; fewer while the index is still being built. */
  readonly searched: number;
  readonly of: number;
}
