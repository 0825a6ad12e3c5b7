import { gzipSync } from 'node:zlib';

/** The hub or topic of types that match. */
export type Route =
  | { readonly eventTypePrefix: string; readonly to: string }
  | { readonly eventTypeRegex: RegExp; readonly to: string };

/** A pipeline of the team: an Event Hubs namespace or a Pub/Sub project. Its SDK is outside: see `Publish`. */
export interface Destination {
  readonly name: string;
  readonly kind: 'event_hubs' | 'pubsub';
  /** The hub or topic of events without a matching route. */
  readonly fallback: string;
  /** In order; the first match decides. */
  readonly routes?: readonly Route[];
  /** Pub/Sub only: user id as ordering key. */
  readonly ordering?: boolean;
  /** In names of metadata: `event-type`, or `event_type` as in older messages. Default `-`. */
  readonly separator?: '-' | '_';
}

/** The message of one event. `metadata` are properties in Event Hubs and attributes in Pub/Sub. */
export interface EtlMessage {
  /** Hub or topic. */
  readonly target: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Partition key, or ordering key; null leaves it to the broker. */
  readonly key: string | null;
  readonly body: Buffer;
  /** The name of the blob with a body that is too large for the target, `/`-separated. */
  readonly blob: string;
}

/** Puts a message into a real or simulated broker. */
export type Publish = (destination: Destination, message: EtlMessage) => void;

interface EtlEvent {
  readonly id: string;
  readonly type: string;
  readonly teamId: string;
  /** Empty for an event without a user. */
  readonly userId: string;
  readonly body: Buffer;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Smaller bodies are not compressed. */
const COMPRESSED_FROM = 1024;
/** In a blob's name, instead of a missing id. */
const NO_ID = '__HIVE_DEFAULT_PARTITION__';

export function etlMessage(destination: Destination, event: EtlEvent): EtlMessage {
  const { id, type, teamId, userId, body } = event;
  const route = destination.routes?.find((one) => matches(one, type));
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

function matches(route: Route, type: string): boolean {
  return 'eventTypePrefix' in route
    ? type.startsWith(route.eventTypePrefix)
    : route.eventTypeRegex.test(type);
}

function spelled(metadata: Readonly<Record<string, string>>, separator: '-' | '_'): Record<string, string> {
  const entries = Object.entries(metadata);
  return Object.fromEntries(entries.map(([name, value]) => [name.replaceAll('-', separator), value]));
}

/** `{team}/{user}/{rfc3339}#{event-type}#{idempotency-key}.json[.gz]`, with `/` and `#` escaped in the parts. */
function blobName({ id, type, teamId, userId, at }: EtlEvent, zipped: boolean): string {
  const file = [new Date(at).toISOString(), encodeURIComponent(type), encodeURIComponent(id)].join('#');
  return `${levelOf(teamId)}/${levelOf(userId)}/${file}.json${zipped ? '.gz' : ''}`;
}

function levelOf(id: string): string {
  return id === '' ? NO_ID : encodeURIComponent(id);
}
