import { PubSub, v1, type Message } from '@google-cloud/pubsub';
import { PROJECT } from './pubsub-peer/peer.ts';

/** A message as an independent subscriber gets it. */
export interface Received {
  readonly data: Buffer;
  readonly attributes: Readonly<Record<string, string>>;
  readonly orderingKey: string;
}

/** What tests do with an emulator or a peer through Google's own library: topics, subscriptions, reading. */
export class PubSubAdmin {
  readonly #pubsub: PubSub;
  readonly #subscriber: v1.SubscriberClient;

  constructor(endpoint: string) {
    // Without a domain of its own the library would look for credentials on the network.
    const credentials = { clientOptions: { universeDomain: 'googleapis.com' } };
    const options = { projectId: PROJECT, apiEndpoint: endpoint, emulatorMode: true, ...credentials };
    this.#pubsub = new PubSub(options);
    this.#subscriber = new v1.SubscriberClient({ ...this.#pubsub.options });
  }

  /** Makes a topic with one subscription of the same name. */
  async create(topic: string, ordered = false): Promise<void> {
    await this.#pubsub.createTopic({ name: topic }, TIMEOUT);
    const gaxOpts = TIMEOUT;
    await this.#pubsub.createSubscription(topic, topic, { enableMessageOrdering: ordered, gaxOpts });
  }

  async publish(topic: string, message: Partial<Received>): Promise<void> {
    const { data = Buffer.alloc(0), attributes = {}, orderingKey } = message;
    const messageOrdering = orderingKey !== undefined;
    const key = messageOrdering ? { orderingKey } : {};
    await this.#pubsub.topic(topic, { messageOrdering }).publishMessage({ data, attributes, ...key });
  }

  /** Everything a subscription has waiting, acknowledged. */
  async drain(name: string): Promise<Received[]> {
    const subscription = this.#path(name);
    const all: Received[] = [];
    for (;;) {
      const request = { subscription, maxMessages: 1000, returnImmediately: true };
      const [{ receivedMessages }] = await this.#subscriber.pull(request, TIMEOUT);
      const ackIds = (receivedMessages ?? []).map(({ ackId }) => ackId ?? '');
      if (ackIds.length === 0) return all;
      await this.#subscriber.acknowledge({ subscription, ackIds }, TIMEOUT);
      for (const { message } of receivedMessages ?? []) {
        const { data, attributes, orderingKey } = message ?? {};
        all.push({
          data: Buffer.from((data ?? '') as Uint8Array),
          attributes: { ...attributes },
          orderingKey: orderingKey ?? '',
        });
      }
    }
  }

  /** Reads with the library's streaming subscriber until it has had so many messages. */
  async receive(name: string, count: number): Promise<Received[]> {
    const subscription = this.#pubsub.subscription(name, { flowControl: { maxMessages: 100 } });
    const all: Received[] = [];
    const enough = Promise.withResolvers<void>();
    subscription.on('error', enough.reject);
    subscription.on('message', (message: Message) => {
      const { data, attributes, orderingKey } = message;
      all.push({ data, attributes, orderingKey: orderingKey ?? '' });
      message.ack();
      if (all.length === count) enough.resolve();
    });
    await enough.promise;
    await subscription.close();
    return all;
  }

  async close(): Promise<void> {
    await this.#subscriber.close();
    await this.#pubsub.close();
  }

  #path(subscription: string): string {
    return `projects/${PROJECT}/subscriptions/${subscription}`;
  }
}

const TIMEOUT = { timeout: 120_000 };
