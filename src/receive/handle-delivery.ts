import type { IncomingMessage, ServerResponse } from 'node:http';
import { MillraceError } from '../core/errors.ts';
import type { Event } from '../core/event.ts';
import { ID_REUSED, type Ingest, type IngestOptions } from '../core/ingest.ts';
import { traceOf, type TraceContext } from '../core/trace.ts';
import { TRY_BYTES, type RequestHeaders, type Verifier } from '../core/verifier.ts';
import type { Validator } from '../validate/envelope.ts';
import { type BodyLimits, readBody } from './body.ts';
import type { Share } from './budget.ts';
import type { Examined } from './examine.ts';
import { isProblem, type Outcome, problem } from './outcome.ts';

/** Whether a delivery may come in at all; asked before its body is read. */
export type Admission =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly code: 'backlog_full' | 'journal_full' | 'journal_failed' | 'shutting_down';
      readonly retryAfterMs: number;
    };

/** The parts a delivery passes through, in this order. */
export interface Stages {
  admission(): Admission;
  readonly verifier: Verifier;
  readonly validate: Validator;
  readonly ingest: Ingest;
  readonly source: string;
  readonly limits: BodyLimits;
  /** Wall clock, milliseconds. */
  now(): number;
  /** Told of every rejection that is not a MillraceError with a status. */
  onError(error: unknown): void;
}

/** How far one delivery has got; read by the deadline and by metrics. */
export interface Progress {
  stage: 'headers' | 'body' | 'journal';
  bodyBytes: number;
  /** Index of the secret that matched; `null` before that and without signatures. */
  secret: number | null;
  /** Event type, `null` as long as it is not known. */
  type: string | null;
  /** The trace of the span around this delivery; `null` when nobody records one. */
  readonly trace: TraceContext | null;
}

/** Takes one delivery from its body to its outcome; answers nothing itself. */
export async function handleDelivery(
  request: IncomingMessage,
  response: ServerResponse,
  { receivedAt, encoding, length, tries }: Examined,
  stages: Stages,
  share: Share,
  progress: Progress,
): Promise<Outcome> {
  const { headers } = request;
  progress.stage = 'body';
  // HTTP/1.0 does not know an answer before the answer.
  if (headers.expect !== undefined && request.httpVersion !== '1.0') response.writeContinue();
  const read = await readBody(request, encoding, length, stages.limits, share);
  if (!read.ok) return read.code === 'gone' ? { kind: 'gone' } : problem(read.code, read.detail);
  const { body } = read;
  progress.bodyBytes = body.length;

  const verified = stages.verifier.verify(headers, body, receivedAt);
  if (!verified.ok) {
    share.work += body.length + tries * (TRY_BYTES + body.length);
    return problem(verified.code, verified.detail);
  }
  const { id } = verified;
  if (verified.secret >= 0) progress.secret = verified.secret;

  const validation = stages.validate(body);
  const { type, team, user, clientUser } = validation.envelope;
  if (type !== '') progress.type = type;
  const event: Event = {
    id,
    source: stages.source,
    receivedAt,
    type,
    team,
    user,
    clientUser,
    headers: verified.headers,
    body,
  };

  progress.stage = 'journal';
  try {
    const reasons = validation.fit ? null : validation.reasons;
    const { status } =
      reasons === null
        ? await stages.ingest.accept(event, tracedBy(headers, progress))
        : await stages.ingest.quarantine(event, reasons);
    if (status === 'reused') return { kind: 'quarantined', id, reasons: [ID_REUSED, ...(reasons ?? [])] };
    return reasons !== null && status === 'accepted'
      ? { kind: 'quarantined', id, reasons }
      : { kind: status, id };
  } catch (error) {
    if (error instanceof MillraceError && isProblem(error.code)) {
      return problem(error.code, error.code === 'unfit' ? error.detail : 'nothing was stored');
    }
    stages.onError(error);
    return problem('internal', 'the event could not be stored');
  }
}

function tracedBy(headers: RequestHeaders, progress: Progress): IngestOptions | undefined {
  const trace = progress.trace ?? traceOf(headers);
  return trace === null ? undefined : { handling: { trace } };
}
