import { bodyId, deliveryIdOf } from '../core/delivery-id.ts';
import type { Envelope, Event, Handling } from '../core/event.ts';
import type { AppendResult, Unfitness } from '../core/journal.ts';
import type { IncomingMessage } from '../core/source.ts';
import { traceOf } from '../core/trace.ts';
import type { Validation } from '../validate/envelope.ts';
import { decodeBody, type Decoded } from './decode.ts';

export interface IntakeOptions {
  /** Becomes the `source` of the events. */
  readonly name: string;
  /** The same check webhooks go through; what the body lacks is taken from the message's metadata. */
  readonly validate: (body: Buffer, known: Partial<Envelope>) => Validation;
  readonly accept: (event: Event, dedupKey: string, handling?: Handling) => Promise<AppendResult>;
  readonly quarantine: (
    event: Event,
    reasons: readonly Unfitness[],
    dedupKey: string,
  ) => Promise<AppendResult>;
  /** Largest body after decompression. */
  readonly maxBytes: number;
}

const DETAIL = {
  encoding_unknown: 'the content encoding is not known',
  encoding_broken: 'the body cannot be decompressed within the limit',
} as const;

/**
 * Takes messages of the service's own pipelines into the journal: decompress, validate, store. Resolves once all of them
 * are durable, or were stored before; rejects when one could not be stored, and the batch then has to come again.
 */
export function createSourceIntake(
  options: IntakeOptions,
): (batch: readonly IncomingMessage[]) => Promise<void> {
  const takeOne = async (message: IncomingMessage, decoded: Decoded): Promise<void> => {
    const metadata = readMetadata(message.properties);
    const { body } = decoded;
    const key = metadata.idempotencyKey;
    const id = key === null ? bodyId(body) : deliveryIdOf(key);
    const validation = options.validate(body, metadata.envelope);
    const { envelope } = validation;
    const event: Event = {
      ...envelope,
      id,
      source: options.name,
      receivedAt: message.receivedAt,
      headers: {},
      body,
    };
    // The key is unique only within one user and one event type.
    const dedupKey = JSON.stringify([options.name, envelope.user, envelope.type, id]);
    if (!decoded.ok) {
      const reasons = [{ code: decoded.code, detail: DETAIL[decoded.code] }];
      await options.quarantine({ ...event, ...NO_ENVELOPE, ...metadata.envelope }, reasons, dedupKey);
    } else if (validation.fit) await options.accept(event, dedupKey, handlingOf(message));
    else await options.quarantine(event, validation.reasons, dedupKey);
  };
  return async (batch) => {
    const decoded = await Promise.all(
      batch.map(async (message) => ({
        message,
        body: await decodeBody(message.body, message.encoding, options.maxBytes),
      })),
    );
    // Only now, and without waiting in between: decompressing takes each its time, and the journal keeps the order.
    const results = await Promise.allSettled(decoded.map(({ message, body }) => takeOne(message, body)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  };
}

/** The trace goes on to wherever the event does. */
function handlingOf({ properties }: IncomingMessage): Handling | undefined {
  const trace = traceOf(properties);
  return trace === null ? undefined : { trace };
}

const NO_ENVELOPE: Envelope = { type: '', team: null, user: null, clientUser: null };

/** The pipelines' metadata, in hyphens as they are now or in underscores as they were. */
function readMetadata(properties: Readonly<Record<string, string>>): {
  readonly idempotencyKey: string | null;
  readonly envelope: Partial<Envelope>;
} {
  const get = (name: string): string | undefined =>
    properties[name] ?? properties[name.replaceAll('-', '_')] ?? undefined;
  const type = get('event-type');
  const team = get('team-id');
  const user = get('user-id');
  const clientUser = get('client-user-id');
  return {
    idempotencyKey: get('idempotency-key') ?? null,
    envelope: {
      ...(type === undefined ? {} : { type }),
      ...(team === undefined ? {} : { team }),
      ...(user === undefined ? {} : { user }),
      ...(clientUser === undefined ? {} : { clientUser }),
    },
  };
}
