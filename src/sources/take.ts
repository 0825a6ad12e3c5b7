import { bodyId, deliveryIdOf, messageKey } from '../core/delivery-id.ts';
import type { Envelope, Event } from '../core/event.ts';
import { type AppendResult, ENCODING_DETAIL, type IncomingMessage, type Ingest } from '../core/ingest.ts';
import type { Inlet } from '../core/sink.ts';
import { traceOf } from '../core/tracing.ts';
import type { Validator } from '../receive/validate/envelope.ts';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

export interface TakeOptions {
  readonly ingest: Ingest;
  /** The check of webhooks; fields that the body lacks come from the message's metadata. */
  readonly validate: Validator;
  /** Of the largest body after decompression. */
  readonly maxBytes: number;
}

/**
 * Makes the function that stores messages of the service's own pipelines in the journal: it decompresses and validates them.
 * It resolves when all are durable, or were stored before. It rejects when one could not be stored; the batch must then be
 * delivered again.
 */
export function createTake({ ingest, validate, maxBytes }: TakeOptions): Inlet['take'] {
  const takeOne = async (
    source: string,
    { properties, receivedAt }: IncomingMessage,
    decoded: Decoded,
  ): Promise<AppendResult> => {
    const { body } = decoded;
    const key = saidIn(properties, 'idempotency-key');
    const known = envelopeIn(properties);
    const id = key === undefined ? bodyId(body) : deliveryIdOf(key);
    const validation = validate(body, known);
    const { envelope } = validation;
    const event: Event = { ...envelope, id, source, receivedAt, headers: {}, body };
    if (!decoded.ok) {
      const reasons = [{ code: decoded.code, detail: ENCODING_DETAIL[decoded.code] }];
      // Its key is made of what is kept of it, so that an erasure can make it again.
      const kept = { ...event, ...NO_ENVELOPE, ...known };
      return ingest.quarantine(kept, reasons, { dedupKey: messageKey(kept) });
    }
    const dedupKey = messageKey(event);
    if (!validation.isValid) return ingest.quarantine(event, validation.reasons, { dedupKey });
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
    // In one turn, so that the journal has them in their order, however long each took to decompress.
    const taken = decoded.map(({ message, body }) => takeOne(source, message, body));
    for (const result of await Promise.allSettled(taken))
      if (result.status === 'rejected') throw result.reason;
  };
}

const NO_ENVELOPE: Envelope = { type: '', team: null, user: null, clientUser: null };

/** The envelope in the metadata of a message; missing fields are left out. */
function envelopeIn(properties: IncomingMessage['properties']): Partial<Envelope> {
  const found = Object.entries(PROPERTIES).map(([field, name]) => [field, saidIn(properties, name)]);
  return Object.fromEntries(found.filter(([, text]) => text !== undefined)) as Partial<Envelope>;
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

const PROPERTIES = {
  type: 'event-type',
  team: 'team-id',
  user: 'user-id',
  clientUser: 'client-user-id',
} as const satisfies Record<keyof Envelope, string>;

/** A body before its compression; if it cannot be decompressed, the body as it came, and why. */
type Decoded =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly code: 'encoding_unknown' | 'encoding_broken'; readonly body: Buffer };

const unzip = promisify(gunzip);

/** @param maxBytes a larger decompressed body is refused as `encoding_broken` */
export async function decodeBody(body: Buffer, encoding: string | null, maxBytes: number): Promise<Decoded> {
  if (encoding === null || encoding === '' || encoding === 'identity') return { ok: true, body };
  if (encoding !== 'gzip') return { ok: false, code: 'encoding_unknown', body };
  try {
    return { ok: true, body: await unzip(body, { maxOutputLength: maxBytes }) };
  } catch {
    return { ok: false, code: 'encoding_broken', body };
  }
}
