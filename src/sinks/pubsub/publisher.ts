import { within } from '../../lib/abort.ts';
import { BufferPool } from '../../lib/buffer-pool.ts';
import {
  closeClient,
  createClient,
  ready,
  type Client,
  type EncodedRequest,
} from '../../vendors/pubsub/client.ts';
import type { Connection } from '../../vendors/pubsub/connection.ts';
import type { PubSubOptions } from './config.ts';
import { encodeRequest, mostBytes } from './encode.ts';
import { LateError, toFailure } from '../../vendors/pubsub/failure.ts';
import type { Message } from './message.ts';

type PublisherOptions = Pick<PubSubOptions, keyof Connection | 'timeout'>;

type Operation<T> = (
  client: Client,
  options: { readonly timeout: number; readonly retry: null; readonly signal: AbortSignal },
) => Promise<T>;

/** Time-outs in a row after which the client is replaced, although the system reports a connection. */
const LATE_CALLS = 3;

/**
 * Publishes requests, each answered or failed within `timeout`. It never retries.
 *
 * The SDK's own publisher is not used: it has its own queues, retries and order, and would send one batch of the dispatcher in
 * several requests.
 *
 * Modes: unused → connected (by the first call) ⇄ shaken (the last call found no connection, so the next waits for one) →
 * closed. After several time-outs in a row the client is replaced, and the mode is unused.
 */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #onReplaced: () => void;
  readonly #buffers = new BufferPool();
  #client: Promise<Client> | null = null;
  #mode: 'unused' | 'connected' | 'shaken' | 'closed' = 'unused';
  #late = 0;

  constructor(options: PublisherOptions, onReplaced: () => void = () => undefined) {
    this.#options = options;
    this.#onReplaced = onReplaced;
  }

  /** One publish request. @throws the SDK's error; then it is unknown whether the messages are stored */
  async publish(topic: string, messages: readonly Message[], signal: AbortSignal): Promise<void> {
    const buffer = this.#buffers.take(mostBytes(topic, messages));
    const request: EncodedRequest = { topic, bytes: encodeRequest(buffer, topic, messages) };
    const [{ messageIds = [] }] = await this.#call(signal, (client, options) =>
      client.publish(request, options),
    );
    // Not after a failure: the client may still read from the buffer.
    this.#buffers.give(buffer);
    const stored = messageIds?.length ?? 0;
    if (stored !== messages.length)
      throw new Error(`${stored} of ${messages.length} messages were confirmed`);
  }

  /** @throws the SDK's error unless the topic exists and may be seen */
  async seeTopic(topic: string, signal: AbortSignal): Promise<void> {
    await this.#call(signal, (client, options) => client.getTopic({ topic }, options));
  }

  /** @throws Error unless there is a connection */
  async connect(signal: AbortSignal): Promise<void> {
    await this.#call(signal, (client) => ready(client, this.#options.timeout));
  }

  async close(): Promise<void> {
    this.#mode = 'closed';
    await closeClient(this.#client);
  }

  async #call<T>(signal: AbortSignal, operation: Operation<T>): Promise<T> {
    const { timeout } = this.#options;
    try {
      const late = new LateError(`no answer in ${timeout} ms`);
      const result = await within(this.#run(signal, operation), timeout, signal, late);
      this.#note(null);
      return result;
    } catch (error) {
      this.#note(error);
      throw error;
    }
  }

  async #run<T>(signal: AbortSignal, operation: Operation<T>): Promise<T> {
    if (this.#mode === 'closed') throw new Error('the connection is closed');
    const { timeout } = this.#options;
    const client = await this.#open();
    // Otherwise a call would fail at once while the channel pauses between two attempts to connect.
    if (this.#mode === 'shaken') await ready(client, timeout);
    return operation(client, { timeout, retry: null, signal });
  }

  #open(): Promise<Client> {
    this.#client ??= createClient(this.#options).catch((error: unknown) => {
      this.#client = null;
      throw error;
    });
    return this.#client;
  }

  #note(error: unknown): void {
    if (this.#mode === 'closed') return;
    const kind = error === null ? null : toFailure(error).kind;
    if (kind === 'aborted') return;
    this.#mode = kind === 'lost' || kind === 'late' ? 'shaken' : 'connected';
    this.#late = kind === 'late' ? this.#late + 1 : 0;
    if (this.#late < LATE_CALLS) return;
    this.#late = 0;
    this.#mode = 'unused';
    const given = this.#client;
    this.#client = null;
    void closeClient(given);
    this.#onReplaced();
  }
}
