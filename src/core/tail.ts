import { z } from 'zod';
import type { ArchiveRecord } from './archive.ts';

/** Of a delivery on its way in, and then of its event at each sink. */
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

/** Body of `POST /api/tail`. An empty list selects all. */
export const tailRequestSchema = z.strictObject({
  /** Prefixes of event types. */
  types: few,
  /** `user_id` or `client_user_id`. */
  users: few,
  /** Only lines about deliveries to these sinks. */
  sinks: few,
  outcomes: z.array(z.enum(TAIL_OUTCOMES)).default([]),
  bodies: z.boolean().default(false),
  /** Milliseconds since the epoch: starts with the newest events since then; null with the next event. */
  since: z.number().min(0).nullable().default(null),
});

type Parsed = z.output<typeof tailRequestSchema>;
export type TailRequest = { readonly [Key in keyof Parsed]: Readonly<Parsed[Key]> };

/** An event in a line of the answer. Keys as in the archive. */
export interface EventLine extends Omit<ArchiveRecord, 'received_at' | 'headers'> {
  readonly bytes: number;
}

/** One line of the answer. A refused request has only its code: nothing else of it is trusted. */
export interface TailLine extends Partial<EventLine> {
  /** ISO 8601. */
  readonly at: string;
  readonly outcome: TailOutcome;
  readonly sink?: string;
  readonly destination?: string | null;
  /** From receipt to the sink's confirmation, milliseconds. */
  readonly ms?: number;
  /** Of a refused request, a quarantined event or a dead letter. */
  readonly code?: string;
  readonly reason?: string;
  /** Only where bodies were asked for. */
  readonly body_base64?: string;
}

/** A line about the answer itself. */
export interface TailNotice {
  /** `lost`: so many lines were dropped, because the client was too slow. `older`: there were more events since then. */
  readonly notice: 'lost' | 'older' | 'failed';
  readonly lines?: number;
  readonly detail?: string;
}
