import { bodyId, deliveryIdOf, messageKey } from '../core/delivery-id.ts';
import type { Envelope, Event } from '../core/event.ts';
import type { AppendResult, IncomingMessage, Ingest } from '../core/ingest.ts';
import type { Inlet } from '../core/sink.ts';
import { traceOf } from '../core/tracing.ts';
import type { Validator } from '../receive/validate/envelope.ts';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

export interface TakeOptions {
  readonly ingest: Ingest;
  /** The same check webhooks go through; what the body lacks is taken from the message's metadata. */
  readonly validate: Validator;
  /** Largest body after decompression. */
  readonly maxBytes: number;
}

const DETAIL = {
  encoding_unknown: 'the content encoding is not known',
  encoding_broken: 'the body cannot be decompressed within the limit',
} as const;

/**
 * What takes messages of the service's own pipelines into the journal: decompress, validate, store. It resolves once all
 * of them are durable, or were stored before; rejects when one could not be stored, and the batch then has to come again.
 */
export function createTake({ ingest, validate, maxBytes }: TakeOptions): Inlet['take'] {
  const takeOne = async (
    source: string,
    { properties, receivedAt }: IncomingMessage,
    decoded: Decoded,
  ): Promise<AppendResult> => {
    const { body } = decoded;
    const { idempotencyKey: key, envelope: known } = readMetadata(properties);
    const id = key === null ? bodyId(body) : deliveryIdOf(key);
    const validation = validate(body, known);
    const { envelope } = validation;
    const event: Event = { ...envelope, id, source, receivedAt, headers: {}, body };
    if (!decoded.ok) {
      const reasons = [{ code: decoded.code, detail: DETAIL[decoded.code] }];
      // Known by what is kept of it: an erasure could not tell otherwise by what it is known.
      const kept = { ...event, ...NO_ENVELOPE, ...known };
      return ingest.quarantine(kept, reasons, { dedupKey: messageKey(kept) });
    }
    const dedupKey = messageKey(event);
    if (!validation.fit) return ingest.quarantine(event, validation.reasons, { dedupKey });
    // The trace continues to wherever the event does.
    const trace = traceOf(properties);
    return ingest.accept(event, { handling: trace === null ? undefined : { trace }, dedupKey });
  };
  return async (source, batch) => {
    const decoded = await Promise.all(
      batch.map(async (message) => ({
        message,
        body: await decodeBody(message.body, message.encoding, maxBytes),
      })),
    );
    // Only now, and without waiting in between: decompressing takes each its time, and the journal keeps the order.
    const taken = decoded.map(({ message, body }) => takeOne(source, message, body));
    for (const result of await Promise.allSettled(taken))
      if (result.status === 'rejected') throw result.reason;
  };
}

const NO_ENVELOPE: Envelope = { type: '', team: null, user: null, clientUser: null };

/** The pipelines' metadata. */
function readMetadata(properties: Readonly<Record<string, string>>): {
  readonly idempotencyKey: string | null;
  readonly envelope: Partial<Envelope>;
} {
  const type = saidIn(properties, 'event-type');
  const team = saidIn(properties, 'team-id');
  const user = saidIn(properties, 'user-id');
  const clientUser = saidIn(properties, 'client-user-id');
  return {
    idempotencyKey: saidIn(properties, 'idempotency-key') ?? null,
    envelope: {
      ...(type === undefined ? {} : { type }),
      ...(team === undefined ? {} : { team }),
      ...(user === undefined ? {} : { user }),
      ...(clientUser === undefined ? {} : { clientUser }),
    },
  };
}

/** A property by its name with hyphens; older publishers wrote underscores. */
function saidIn(properties: IncomingMessage['properties'], name: string): string | undefined {
  return properties[name] ?? properties[name.replaceAll('-', '_')];
}

/** @param name of the property that has the encoding */
export function encodingIn(
  properties: IncomingMessage['properties'],
  name: string,
): IncomingMessage['encoding'] {
  return saidIn(properties, name)?.toLowerCase() || null;
}

/** A body as the publisher had it before compression, or why it could not be told. `body` is then as it came. */
type Decoded =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly code: 'encoding_unknown' | 'encoding_broken'; readonly body: Buffer };

const unzip = promisify(gunzip);

/** @param maxBytes above which a decompressed body is refused as `encoding_broken`. */
export async function decodeBody(body: Buffer, encoding: string | null, maxBytes: number): Promise<Decoded> {
  if (encoding === null || encoding === '' || encoding === 'identity') return { ok: true, body };
  if (encoding !== 'gzip') return { ok: false, code: 'encoding_unknown', body };
  try {
    return { ok: true, body: await unzip(body, { maxOutputLength: maxBytes }) };
  } catch {
    return { ok: false, code: 'encoding_broken', body };
  }
}
