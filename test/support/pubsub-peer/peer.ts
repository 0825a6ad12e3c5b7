import { createServer, type Server as TcpServer } from 'node:net';
import { Server, ServerCredentials, type ConnectionInjector } from '@grpc/grpc-js';
import { BrokerPeer } from '../broker-peer.ts';
import { Faults, type Fault } from './faults.ts';
import { newTopic, publisher } from './publisher.ts';
import { loadServices, measured } from './services.ts';
import { subscriber } from './subscriber.ts';
import { Subscription, type PeerMessage, type Topic } from './topics.ts';

export interface PubSubPeerOptions {
  /** Topics that exist from the start, by their short names. */
  readonly topics?: readonly string[];
  /** Topic of each subscription. */
  readonly subscriptions?: Readonly<Record<string, string>>;
  /** Whether those subscriptions keep the order of a key. */
  readonly ordered?: boolean;
}

/** One publish request as it came in, stored or not. */
export interface PeerRequest {
  readonly topic: string;
  readonly messages: readonly PeerMessage[];
}

/** The project all of the peer's topics are in. */
export const PROJECT = 'millrace-test';

/**
 * Pub/Sub in this process, spoken to over real gRPC on a real port: topics, subscriptions, the service's limits, and
 * faults on demand. Messages live in memory.
 *
 *     const peer = await startPubSubPeer({ topics: ['events'] });
 *     new PubSub({ apiEndpoint: peer.endpoint, projectId: PROJECT }) …
 *     peer.inject({ kind: 'drop', times: 1 });
 *     peer.messages('events');
 *     await peer.stop();
 */
export class PubSubPeer extends BrokerPeer<Fault> {
  readonly requests: PeerRequest[] = [];
  readonly #topics = new Map<string, Topic>();
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #grpc = new Server({ 'grpc.max_receive_message_length': -1 });
  readonly #injector: ConnectionInjector;

  constructor({ topics = [], subscriptions = {}, ordered = false }: PubSubPeerOptions = {}) {
    const faults = new Faults();
    super(faults);
    for (const name of topics) this.#topics.set(topicPath(name), newTopic());
    for (const [name, topic] of Object.entries(subscriptions)) {
      const subscription = new Subscription(topicPath(topic), ordered);
      this.#subscriptions.set(subscriptionPath(name), subscription);
      this.#topics.get(topicPath(topic))?.subscriptions.add(subscription);
    }
    const state = {
      topics: this.#topics,
      subscriptions: this.#subscriptions,
      faults,
      cut: () => this.cut(),
      onRequest: (topic: string, messages: readonly PeerMessage[]) => {
        this.requests.push({ topic, messages });
      },
    };
    const services = loadServices();
    this.#grpc.addService(measured(services.Publisher, 'Publish'), publisher(state));
    this.#grpc.addService(services.Subscriber, subscriber(state));
    this.#injector = this.#grpc.createConnectionInjector(ServerCredentials.createInsecure());
  }

  get endpoint(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Everything a topic has taken, in order. */
  messages(topic: string): readonly PeerMessage[] {
    const found = this.#topics.get(topicPath(topic));
    if (found === undefined) throw new RangeError(`the peer has no topic ${topic}`);
    return found.messages;
  }

  addTopic(name: string): void {
    this.#topics.set(topicPath(name), newTopic());
  }

  subscription(name: string): Pick<Subscription, 'acknowledged' | 'unacknowledged'> {
    const found = this.#subscriptions.get(subscriptionPath(name));
    if (found === undefined) throw new RangeError(`the peer has no subscription ${name}`);
    return found;
  }

  protected override listen(port: number): TcpServer {
    return createServer((socket) => {
      socket.on('error', () => undefined);
      this.#injector.injectConnection(socket);
    }).listen(port, '127.0.0.1');
  }
}

export async function startPubSubPeer(options?: PubSubPeerOptions): Promise<PubSubPeer> {
  const peer = new PubSubPeer(options);
  await peer.restart();
  return peer;
}

function topicPath(name: string): string {
  return `projects/${PROJECT}/topics/${name}`;
}

function subscriptionPath(name: string): string {
  return `projects/${PROJECT}/subscriptions/${name}`;
}
