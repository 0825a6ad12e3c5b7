import type { IncomingMessage, ServerResponse } from 'node:http';
import { MillraceError } from '../core/errors.ts';
import type { Event } from '../core/event.ts';
import { ID_REUSED, type IngestOptions } from '../core/ingest.ts';
import { traceOf, type TraceContext } from '../core/trace.ts';
import { TRY_BYTES, type RequestHeaders } from '../core/verifier.ts';
import { readBody } from './body.ts';
import type { Share } from './budget.ts';
import type { Examined } from './examine.ts';
import { isProblem, type Outcome, problem } from './outcome.ts';
import type { Stages } from './stages.ts';

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
