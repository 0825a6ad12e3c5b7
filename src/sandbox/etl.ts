import { gzipSync } from 'node:zlib';

/** Events whose type begins so, or matches, go there. */
export type Route =
  | { readonly eventTypePrefix: string; readonly to: string }
  | { readonly eventTypeRegex: RegExp; readonly to: string };

/** A pipeline of the team's own: an Event Hubs namespace or a Pub/Sub project. Its SDK stays outside: see `publish`. */
export interface Destination {
  readonly name: string;
  readonly kind: 'event_hubs' | 'pubsub';
  /** The hub or topic of events that no route takes. */
  readonly fallback: string;
  /** In order; the first that matches decides. */
  readonly routes?: readonly Route[];
  /** Pub/Sub only: user id as ordering key. */
  readonly ordering?: boolean;
  /** How the names of the metadata are written: `event-type`, or `event_type` as older messages have it. Default `-`. */
  readonly separator?: '-' | '_';
}

/** What a pipeline gets of one event. `metadata` are properties in Event Hubs and attributes in Pub/Sub. */
export interface EtlMessage {
  /** Hub or topic. */
  readonly target: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Partition key, or ordering key; null leaves it to the broker. */
  readonly key: string | null;
  readonly body: Buffer;
  /** The name under which the body is kept when it is larger than the target takes, `/`-separated. */
  readonly blob: string;
}

/** The hook by which a caller puts messages into a real or pretended broker. */
export type Publish = (destination: Destination, message: EtlMessage) => void;

interface EtlEvent {
  readonly id: string;
  readonly type: string;
  readonly teamId: string;
  /** Empty when it is about nobody. */
  readonly userId: string;
  readonly body: Buffer;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Smaller bodies are not compressed. */
const COMPRESSED_FROM = 1024;
/** What stands in a blob's name for an id that is missing. */
const NOBODY = '__HIVE_DEFAULT_PARTITION__';

/** The message by which one event reaches a destination. */
export function etlMessage(destination: Destination, event: EtlEvent): EtlMessage {
  const { id, type, teamId, userId, body } = event;
  const route = destination.routes?.find((one) => takes(one, type));
  const zipped = body.length >= COMPRESSED_FROM;
  const hubs = destination.kind === 'event_hubs';
  const metadata = {
    'event-type': type,
    'idempotency-key': id,
    ...(hubs
      ? { ...(userId === '' ? {} : { 'user-id': userId }), 'team-id': teamId }
      : { 'blob-type': 'json' }),
    ...(zipped ? { [hubs ? 'content-encoding' : 'blob-codec']: 'gzip' } : {}),
  };
  return {
    target: route?.to ?? destination.fallback,
    metadata: spelled(metadata, destination.separator ?? '-'),
    key: (hubs || destination.ordering === true) && userId !== '' ? userId : null,
    body: zipped ? gzipSync(body) : body,
    blob: blobName(event, zipped),
  };
}

function takes(route: Route, type: string): boolean {
  return 'eventTypePrefix' in route
    ? type.startsWith(route.eventTypePrefix)
    : route.eventTypeRegex.test(type);
}

function spelled(metadata: Readonly<Record<string, string>>, separator: '-' | '_'): Record<string, string> {
  const entries = Object.entries(metadata);
  return Object.fromEntries(entries.map(([name, value]) => [name.replaceAll('-', separator), value]));
}

/** `{team}/{user}/{rfc3339}#{event-type}#{idempotency-key}.json[.gz]`; what could end a level or a part is escaped. */
function blobName({ id, type, teamId, userId, at }: EtlEvent, zipped: boolean): string {
  const file = [new Date(at).toISOString(), encodeURIComponent(type), encodeURIComponent(id)].join('#');
  return `${levelOf(teamId)}/${levelOf(userId)}/${file}.json${zipped ? '.gz' : ''}`;
}

function levelOf(id: string): string {
  return id === '' ? NOBODY : encodeURIComponent(id);
}
