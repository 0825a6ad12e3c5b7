import { typeWithoutData } from '../core/data-names.ts';
import { MillraceError } from '../core/errors.ts';
import type { Event } from '../core/event.ts';
import { type AppendResult, ID_REUSED, type IngestOptions, type InvalidReason } from '../core/ingest.ts';
import { canonicalId } from '../core/named-ids.ts';
import { SALT_HEADER } from '../core/receipt.ts';
import { traceOf } from '../core/tracing.ts';
import { TRY_BYTES } from '../core/verifier.ts';
import { readBody } from './body.ts';
import type { Delivery } from './delivery.ts';
import { isProblem, type Outcome, problem } from './outcome.ts';

/**
 * Handles a delivery from its body to its outcome; answers nothing itself. All of it happens in the turn in which the body is
 * complete, except decompression and the journal.
 * @param settle called once
 */
export function handleDelivery(delivery: Delivery, settle: (outcome: Outcome) => void): void {
  const { request, response, examined, stages, memory } = delivery;
  const fail = (error: unknown): void => {
    stages.onError(error);
    settle(problem('internal', 'the delivery could not be handled'));
  };
  // HTTP/1.0 has no `100 Continue`.
  if (request.headers.expect !== undefined && request.httpVersion !== '1.0') response.writeContinue();
  const { encoding, length } = examined;
  readBody(request, encoding, length, stages.limits, memory, delivery.gate, fail, (read) => {
    if (!read.ok) return settle(read.code === 'gone' ? { kind: 'gone' } : problem(read.code, read.detail));
    // Its time ended before, and it was answered.
    if (delivery.isEnded) return settle({ kind: 'gone' });
    let outcome: Outcome | Promise<Outcome>;
    try {
      outcome = store(delivery, read.body);
    } catch (error) {
      return fail(error);
    }
    if (outcome instanceof Promise) outcome.then(settle, fail);
    else settle(outcome);
  });
}

/** Verifies and validates a body, and stores its event. @returns a promise when the journal has it */
function store(delivery: Delivery, body: Buffer): Outcome | Promise<Outcome> {
  const { stages, memory, examined } = delivery;
  const { headers } = delivery.request;
  const { receivedAt, tries } = examined;
  delivery.bodyBytes = body.length;
  const verified = stages.verifier.verify(headers, body, receivedAt);
  if (!verified.ok) {
    memory.work += body.length + tries * (TRY_BYTES + body.length);
    return problem(verified.code, verified.detail);
  }
  const { id } = verified;

  const validation = stages.validate(body);
  const { type, team, user, clientUser } = validation.envelope;
  if (verified.teams !== undefined && team !== null && !verified.teams.has(canonicalId(team)))
    return problem('signature_foreign', 'signing.secrets binds that secret to other teams');
  delivery.isAuthentic = true;
  if (verified.secret >= 0) delivery.secret = verified.secret;
  if (type !== '') {
    delivery.type = type;
    if (delivery.span !== null) delivery.tracedType = typeWithoutData(type, validation.envelope);
  }
  const { receipts } = stages;
  const salt = receipts?.newSalt() ?? null;
  const event: Event = {
    id,
    source: 'webhooks',
    receivedAt,
    type,
    team,
    user,
    clientUser,
    headers: salt === null ? verified.headers : { ...verified.headers, [SALT_HEADER]: salt },
    body,
  };

  delivery.stage = 'journal';
  const stop = delivery.span?.journal();
  const reasons = validation.isValid ? null : validation.reasons;
  const stored =
    reasons === null
      ? stages.ingest.accept(event, tracedBy(delivery))
      : stages.ingest.quarantine(event, reasons);
  return stored.then(
    (result) => {
      stop?.();
      const seq = 'seq' in result ? result.seq : 0;
      const receipt = salt === null || seq <= 0 ? undefined : receipts?.header(seq, salt, receivedAt);
      return outcomeOf(result.status, id, reasons, receipt);
    },
    (error: unknown) => {
      stop?.();
      return refusalOf(error, stages.onError);
    },
  );
}

function outcomeOf(
  status: AppendResult['status'],
  id: string,
  reasons: readonly [InvalidReason, ...InvalidReason[]] | null,
  receipt: string | undefined,
): Outcome {
  if (status === 'reused')
    return { kind: 'quarantined', id, reasons: [ID_REUSED, ...(reasons ?? [])], receipt };
  if (status !== 'accepted') return { kind: status, id };
  return reasons === null ? { kind: 'accepted', id, receipt } : { kind: 'quarantined', id, reasons, receipt };
}

function refusalOf(error: unknown, onError: (error: unknown) => void): Outcome {
  if (error instanceof MillraceError && isProblem(error.code)) {
    return problem(error.code, error.code === 'unfit' ? error.detail : 'nothing was stored');
  }
  onError(error);
  return problem('internal', 'the event could not be stored');
}

function tracedBy({ request, trace: begun }: Delivery): IngestOptions | undefined {
  const trace = begun ?? traceOf(request.headers);
  return trace === null ? undefined : { handling: { trace } };
}
