import { z } from 'zod';

const line = z.string().max(300);
const amount = z.number().min(0);

export const activitySchema = z.strictObject({
  kind: z.enum(['erasure', 'replay', 'backfill', 'reload', 'export']),
  /** The same for as long as the work lasts; a replay id, a request id. Never the id of a user. */
  id: line.min(1),
  /** One line for a person: from where to where. No ids of users. */
  title: line,
  state: z.enum(['waiting', 'running', 'done', 'failed', 'interrupted']),
  done: amount,
  /** Null as long as it is not known. */
  total: amount.nullable(),
  /** What `done` and `total` count: `events`, `users`, `files`. */
  unit: line,
  /** Milliseconds since the epoch. */
  startedAt: amount,
  updatedAt: amount,
  /** What went wrong, or what is being waited for. */
  detail: line.nullable(),
});

/** Work that takes a while and that an operator may want to watch: an erasure, a replay, a backfill. */
export type Activity = Readonly<z.output<typeof activitySchema>>;
