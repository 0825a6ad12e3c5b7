import { gzipSync } from 'node:zlib';

/** A pipeline of the team's own: an Event Hubs namespace or a Pub/Sub project. Its SDK stays outside: see `publish`. */
export interface Destination {
  readonly name: string;
  readonly kind: 'event_hubs' | 'pubsub';
  /** The hub or topic of events that no route takes. */
  readonly fallback: string;
  /** In order; the first that matches decides. */
  readonly routes?: readonly { readonly eventTypePrefix: string; readonly to: string }[];
  /** Pub/Sub only: user id as ordering key. */
  readonly ordering?: boolean;
}

/** What a pipeline gets of one event. `metadata` are properties in Event Hubs and attributes in Pub/Sub. */
export interface EtlMessage {
  /** Hub or topic. */
  readonly target: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Partition key, or ordering key; null leaves it to the broker. */
  readonly key: string | null;
  readonly body: Buffer;
}

/** The hook by which a caller puts messages into a real or pretended broker. */
export type Publish = (destination: Destination, message: EtlMessage) => void | Promise<void>;

export interface EtlEvent {
  readonly id: string;
  readonly type: string;
  readonly teamId: string;
  readonly userId: string;
  readonly body: Buffer;
}

/** Smaller bodies are not compressed. */
const COMPRESSED_FROM = 1024;

/** The message by which one event reaches a destination. */
export function etlMessage(
  destination: Destination,
  { id, type, teamId, userId, body }: EtlEvent,
): EtlMessage {
  const route = destination.routes?.find(({ eventTypePrefix }) => type.startsWith(eventTypePrefix));
  const zipped = body.length >= COMPRESSED_FROM;
  const common = { 'event-type': type, 'idempotency-key': id };
  const hubs = destination.kind === 'event_hubs';
  return {
    target: route?.to ?? destination.fallback,
    metadata: hubs
      ? { ...common, 'user-id': userId, 'team-id': teamId, ...(zipped ? { 'content-encoding': 'gzip' } : {}) }
      : { ...common, 'blob-type': 'json', ...(zipped ? { 'blob-codec': 'gzip' } : {}) },
    key: hubs || destination.ordering === true ? userId : null,
    body: zipped ? gzipSync(body) : body,
  };
}
