import {
  Metadata,
  status,
  type sendUnaryData,
  type ServerUnaryCall,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { Faults } from './faults.ts';
import type { PeerMessage, Topic } from './topics.ts';

export interface PeerState {
  readonly topics: Map<string, Topic>;
  readonly faults: Faults;
  /** Cuts every connection. */
  readonly cut: () => void;
  /** Called with each publish request that came in. */
  readonly onRequest: (topic: string, messages: readonly PeerMessage[]) => void;
}

interface PublishRequest {
  readonly topic: string;
  readonly messages: readonly {
    readonly data: Buffer;
    readonly attributes: Record<string, string>;
    readonly orderingKey: string;
  }[];
  readonly wireBytes: number;
}

interface Failure {
  readonly code: status;
  readonly details: string;
  readonly metadata?: Metadata;
}

/** The service's own limits: bytes of a request, messages in it, bytes of an attribute's value and of an ordering key. */
const LIMITS = { request: 10_000_000, messages: 1000, value: 1024, name: 256, key: 1024 };

/** Makes a server answer as the Publisher service does. */
export function publisher(state: PeerState): UntypedServiceImplementation {
  const { topics } = state;
  let published = 0;
  const publish = (call: ServerUnaryCall<PublishRequest, object>, answer: sendUnaryData<object>): void => {
    const { topic: path, wireBytes, ...request } = call.request;
    const messages = request.messages.map((message): PeerMessage => {
      published += 1;
      return { ...message, messageId: String(published), publishedAt: Date.now() };
    });
    state.onRequest(shortName(path), messages);
    const topic = topics.get(path);
    const fault = state.faults.onPublish(shortName(path), messages);
    const wrong = topic === undefined ? notFound('topic', path) : problemWith(messages, wireBytes);
    if (topic === undefined || wrong !== null) return answer(wrong);
    if (fault?.kind === 'status') return answer(failureOf(fault));
    if (fault === null || (fault.stored ?? fault.kind === 'drop')) store(topic, messages);
    if (fault === null) answer(null, { messageIds: messages.map(({ messageId }) => messageId) });
    else if (fault.kind === 'drop') state.cut();
  };
  const withTopic =
    (act: (path: string) => object) =>
    ({ request }: ServerUnaryCall<{ topic: string }, object>, answer: sendUnaryData<object>): void =>
      topics.has(request.topic) ? answer(null, act(request.topic)) : answer(notFound('topic', request.topic));
  return {
    Publish: publish,
    CreateTopic: (
      { request }: ServerUnaryCall<{ name: string }, object>,
      answer: sendUnaryData<object>,
    ): void => {
      if (topics.has(request.name)) return answer({ code: status.ALREADY_EXISTS, details: request.name });
      topics.set(request.name, newTopic());
      answer(null, { name: request.name });
    },
    GetTopic: withTopic((name) => ({ name })),
    DeleteTopic: withTopic((name) => {
      topics.delete(name);
      return {};
    }),
  };
}

export function newTopic(): Topic {
  return { messages: [], subscriptions: new Set() };
}

export function shortName(path: string): string {
  return path.split('/').at(-1) ?? '';
}

export function notFound(what: string, path: string): Failure {
  return { code: status.NOT_FOUND, details: `Resource not found (resource=${shortName(path)}, ${what}).` };
}

function store(topic: Topic, messages: readonly PeerMessage[]): void {
  topic.messages.push(...messages);
  for (const subscription of topic.subscriptions) for (const message of messages) subscription.add(message);
}

function problemWith(messages: readonly PeerMessage[], wireBytes: number): Failure | null {
  if (wireBytes > LIMITS.request) return invalid(`request_size is too large: ${wireBytes}`);
  if (messages.length > LIMITS.messages) return invalid(`message_count is too large: ${messages.length}`);
  const [first] = messages;
  for (const { attributes, orderingKey, data } of messages) {
    // One request, one key: what the service's reference says of PublishRequest.
    if (orderingKey !== first?.orderingKey) return invalid('messages have different ordering keys');
    if (Buffer.byteLength(orderingKey) > LIMITS.key) return invalid('the ordering key is too long');
    const entries = Object.entries(attributes);
    if (data.length === 0 && entries.length === 0) return invalid('a message is empty');
    for (const [name, value] of entries) {
      if (Buffer.byteLength(name) > LIMITS.name) return invalid('an attribute name is too long');
      if (Buffer.byteLength(value) > LIMITS.value) return invalid('an attribute value is too long');
    }
  }
  return null;
}

function invalid(details: string): Failure {
  return { code: status.INVALID_ARGUMENT, details };
}

function failureOf({
  code,
  details,
  retryAfter,
}: {
  code: status;
  details?: string;
  retryAfter?: number;
}): Failure {
  const failure = { code, details: details ?? `injected ${status[code]}` };
  if (retryAfter === undefined) return failure;
  const metadata = new Metadata();
  metadata.set('grpc-status-details-bin', retryInfo(code, retryAfter));
  return { ...failure, metadata };
}

/** google.rpc.Status with a google.rpc.RetryInfo in it, by hand: its protos are not among the client library's. */
function retryInfo(code: status, ms: number): Buffer {
  const duration = Buffer.concat([varint(1, Math.floor(ms / 1000)), varint(2, (ms % 1000) * 1e6)]);
  const any = Buffer.concat([
    field(1, Buffer.from('type.googleapis.com/google.rpc.RetryInfo')),
    field(2, field(1, duration)),
  ]);
  return Buffer.concat([varint(1, code), field(3, any)]);
}

function varint(number: number, value: number): Buffer {
  const bytes = [number << 3];
  let left = value;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return Buffer.from([...bytes, left]);
}

function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}
