import { once } from 'node:events';
import { createServer, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net';
import { Server, ServerCredentials, type ConnectionInjector } from '@grpc/grpc-js';
import type { InjectedFault } from '../fault-list.ts';
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
 *
 * Modes: listening ⇄ stopped (`stop` cuts every connection; `restart` listens on the same port, messages kept).
 */
export class PubSubPeer {
  readonly requests: PeerRequest[] = [];
  readonly #topics = new Map<string, Topic>();
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #faults = new Faults();
  readonly #sockets = new Set<Socket>();
  readonly #grpc = new Server({ 'grpc.max_receive_message_length': -1 });
  readonly #injector: ConnectionInjector;
  #tcp: TcpServer | null = null;
  #port = 0;

  constructor({ topics = [], subscriptions = {}, ordered = false }: PubSubPeerOptions = {}) {
    for (const name of topics) this.#topics.set(topicPath(name), newTopic());
    for (const [name, topic] of Object.entries(subscriptions)) {
      const subscription = new Subscription(topicPath(topic), ordered);
      this.#subscriptions.set(subscriptionPath(name), subscription);
      this.#topics.get(topicPath(topic))?.subscriptions.add(subscription);
    }
    const state = {
      topics: this.#topics,
      subscriptions: this.#subscriptions,
      faults: this.#faults,
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

  get port(): number {
    return this.#port;
  }

  get endpoint(): string {
    return `127.0.0.1:${this.#port}`;
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

  inject(fault: Fault): InjectedFault {
    return this.#faults.inject(fault);
  }

  /** The same, before those that were injected already. */
  injectFirst(fault: Fault): InjectedFault {
    return this.#faults.inject(fault, 0);
  }

  /** Cuts every connection as a network failure would; clients can connect again at once. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts every connection and refuses new ones. */
  async stop(): Promise<void> {
    const tcp = this.#tcp;
    if (tcp === null) return;
    this.#tcp = null;
    const closed = once(tcp, 'close');
    tcp.close();
    this.cut();
    await closed;
  }

  async restart(): Promise<void> {
    if (this.#tcp !== null) return;
    const tcp = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket)).on('error', () => undefined);
      this.#injector.injectConnection(socket);
    });
    this.#tcp = tcp;
    tcp.listen(this.#port, '127.0.0.1');
    await once(tcp, 'listening');
    this.#port = (tcp.address() as AddressInfo).port;
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
