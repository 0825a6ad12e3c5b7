/** Work that takes a while and that an operator may want to watch: an erasure, a replay, a backfill. */
export interface Activity {
  readonly kind: 'erasure' | 'replay' | 'backfill' | 'reload' | 'export';
  /** The same for as long as the work lasts; a replay id, a request id. Never the id of a user. */
  readonly id: string;
  /** One line for a person: from where to where. No ids of users. */
  readonly title: string;
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'interrupted';
  readonly done: number;
  /** Null as long as it is not known. */
  readonly total: number | null;
  /** What `done` and `total` count: `events`, `users`, `files`. */
  readonly unit: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly updatedAt: number;
  /** What went wrong, or what is being waited for. */
  readonly detail: string | null;
}
