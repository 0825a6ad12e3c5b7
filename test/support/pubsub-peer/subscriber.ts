import {
  status,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { newTopic, notFound, type PeerState } from './publisher.ts';
import { Subscription } from './topics.ts';

export interface SubscriberState extends PeerState {
  readonly subscriptions: Map<string, Subscription>;
}

interface Acks {
  readonly subscription: string;
  readonly ackIds: readonly string[];
  readonly ackDeadlineSeconds: number;
}

interface StreamRequest {
  readonly subscription: string;
  readonly maxOutstandingMessages: string;
}

type Unary<T> = (call: ServerUnaryCall<T, object>, answer: sendUnaryData<object>) => void;

/** Makes a server answer as the Subscriber service does. Streams hand out and take nothing but messages. */
export function subscriber(state: SubscriberState): UntypedServiceImplementation {
  const { subscriptions, topics } = state;
  const withSubscription =
    <T extends { readonly subscription: string }>(
      act: (found: Subscription, request: T) => object,
    ): Unary<T> =>
    ({ request }, answer) => {
      const found = subscriptions.get(request.subscription);
      if (found === undefined) answer(notFound('subscription', request.subscription));
      else answer(null, act(found, request));
    };
  const create: Unary<{ name: string; topic: string; enableMessageOrdering: boolean }> = (call, answer) => {
    const { name, topic: path, enableMessageOrdering } = call.request;
    const topic = topics.get(path);
    if (topic === undefined) return answer(notFound('topic', path));
    if (subscriptions.has(name)) return answer({ code: status.ALREADY_EXISTS, details: name });
    const subscription = new Subscription(path, enableMessageOrdering);
    subscriptions.set(name, subscription);
    topic.subscriptions.add(subscription);
    answer(null, { name, topic: path });
  };
  return {
    CreateSubscription: create,
    GetSubscription: withSubscription(({ topic }, { subscription }) => ({ name: subscription, topic })),
    DeleteSubscription: withSubscription((found, { subscription }) => {
      subscriptions.delete(subscription);
      (topics.get(found.topic) ?? newTopic()).subscriptions.delete(found);
      return {};
    }),
    Acknowledge: withSubscription<Acks>((found, { ackIds }) => {
      found.acknowledge(ackIds);
      return {};
    }),
    ModifyAckDeadline: withSubscription<Acks>((found, { ackIds, ackDeadlineSeconds }) => {
      if (ackDeadlineSeconds === 0) found.giveBack(ackIds);
      return {};
    }),
    Pull: withSubscription<{ subscription: string; maxMessages: number }>((found, { maxMessages }) => ({
      receivedMessages: found.take(maxMessages, {}).map(toReceived),
    })),
    StreamingPull: (stream: ServerDuplexStream<StreamRequest, object>): void => {
      stream.once('data', (request: StreamRequest) => serve(stream, request, subscriptions));
      stream.on('end', () => stream.end());
      stream.on('error', () => undefined);
    },
  };
}

function serve(
  stream: ServerDuplexStream<StreamRequest, object>,
  request: StreamRequest,
  subscriptions: ReadonlyMap<string, Subscription>,
): void {
  const found = subscriptions.get(request.subscription);
  if (found === undefined) {
    stream.emit('error', notFound('subscription', request.subscription));
    return;
  }
  const most = Number(request.maxOutstandingMessages) || 1000;
  const send = (): void => {
    const taken = found.take(most - found.heldBy(stream), stream);
    if (taken.length > 0) stream.write({ receivedMessages: taken.map(toReceived) });
  };
  const stop = (): void => {
    found.readers.delete(send);
    found.release(stream);
  };
  found.readers.add(send);
  stream.once('cancelled', stop).once('end', stop).once('close', stop);
  send();
}

function toReceived({ ackId, message, deliveries }: ReturnType<Subscription['take']>[number]): object {
  const { messageId, data, attributes, orderingKey, publishedAt } = message;
  const publishTime = { seconds: Math.floor(publishedAt / 1000), nanos: (publishedAt % 1000) * 1e6 };
  return {
    ackId,
    message: { messageId, data, attributes, orderingKey, publishTime },
    deliveryAttempt: deliveries,
  };
}
