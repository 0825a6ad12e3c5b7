import { z } from 'zod';

/** What can happen to a delivery on its way in, and then to its event at each sink. */
export const TAIL_OUTCOMES = [
  'accepted',
  'duplicate',
  'quarantined',
  'erased',
  'refused',
  'delivered',
  'retried',
  'dead',
] as const;

export type TailOutcome = (typeof TAIL_OUTCOMES)[number];

const few = z.array(z.string().min(1).max(256)).max(50).default([]);

/** What `POST /api/tail` is asked for. Empty lists take all. */
export const tailRequestSchema = z.strictObject({
  /** Beginnings of event types. */
  types: few,
  /** `user_id` or `client_user_id`. */
  users: few,
  /** Lines about deliveries to these sinks only. */
  sinks: few,
  outcomes: z.array(z.enum(TAIL_OUTCOMES)).default([]),
  bodies: z.boolean().default(false),
  /** Milliseconds since the epoch: begins with the newest of what came in since; null with what comes next. */
  since: z.number().min(0).nullable().default(null),
});

export type TailRequest = Readonly<z.output<typeof tailRequestSchema>>;

/** What is told of any event. snake_case as in the archive. */
export interface EventLine {
  readonly id: string;
  readonly source: string;
  readonly event_type: string;
  readonly team_id: string | null;
  readonly user_id: string | null;
  readonly client_user_id: string | null;
  readonly bytes: number;
}

/** One line of the answer: something has happened. Of a request that was refused nothing is believed, so only its code is told. */
export interface TailLine extends Partial<EventLine> {
  /** ISO 8601. */
  readonly at: string;
  readonly outcome: TailOutcome;
  readonly sink?: string;
  readonly destination?: string | null;
  /** From receipt to the sink's confirmation, milliseconds. */
  readonly ms?: number;
  /** Of a refusal, a quarantined event or a dead letter. */
  readonly code?: string;
  readonly reason?: string;
  /** Only where bodies were asked for. */
  readonly body_base64?: string;
}

/** A line about the stream itself. */
export interface TailNotice {
  /** `lost`: this many lines were left out, because the reader was too slow. `older`: there were more since then. */
  readonly notice: 'lost' | 'older' | 'failed';
  readonly lines?: number;
  readonly detail?: string;
}
