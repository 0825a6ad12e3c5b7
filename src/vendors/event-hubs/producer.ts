import type { EventHubProducerClient } from '@azure/event-hubs';
import { BufferPool } from '../../lib/buffer-pool.ts';
import { Batch, roomFor } from './batch.ts';
import { loadCredential, type Connection } from './connection.ts';
import { toFailure } from './failure.ts';
import type { Message } from './message.ts';

export interface ProducerOptions {
  readonly connection: Connection;
  readonly hub: string;
  /** Milliseconds for one operation. */
  readonly timeout: number;
  /** Of the largest message; the link can have a smaller limit. */
  readonly maxBytes: number;
}

/** Failed operations in a row after which the connection is replaced: the SDK does not repair it any more. */
const MOST_FAILURES = 3;

/**
 * Sends to one hub, with a client of the SDK. The SDK connects again by itself when it notices that the connection is gone.
 *
 * Modes: new → open (by `open`: there is a link, and its limit is known) → retired (by `retire`: nothing new is sent, and
 * the client is closed once what is in flight has been answered). A failed `open` leaves it new.
 */
export class Producer {
  readonly #options: ProducerOptions;
  readonly #buffers = new BufferPool();
  #opening: Promise<EventHubProducerClient> | null = null;
  #maxBytes = 0;
  #pending = 0;
  #failures = 0;
  #isRetired = false;
  readonly #idle = Promise.withResolvers<void>();

  constructor(options: ProducerOptions) {
    this.#options = options;
  }

  get hub(): string {
    return this.#options.hub;
  }

  /** For error messages. */
  get place(): string {
    return `event hub ${this.#options.hub}`;
  }

  /** True when it should be replaced by a new one. */
  get worn(): boolean {
    return this.#failures >= MOST_FAILURES;
  }

  /** Connects, and opens a link for sending. Throws the SDK's errors. */
  open(): Promise<EventHubProducerClient> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /** As many of the first messages as the hub accepts at once; none when the first is too large. */
  async pack(key: string | null, messages: readonly Message[]): Promise<Batch> {
    await this.open();
    const most = this.#maxBytes;
    const batch = new Batch(key, most, this.#buffers.take(roomFor(key, most, messages)));
    for (const message of messages) if (!batch.tryAdd(message)) break;
    return batch;
  }

  /** Resolves when the hub has confirmed the batch, which must not be used again. Throws the SDK's errors. */
  async send(batch: Batch, abortSignal: AbortSignal): Promise<void> {
    const client = await this.open();
    // A closed client of the SDK would connect again.
    if (this.#isRetired) throw new Error('the connection was replaced');
    this.#pending += 1;
    try {
      await client.sendBatch(batch, { abortSignal });
      this.#failures = 0;
    } catch (error) {
      this.#failures = toFailure(error).kind === 'lost' ? this.#failures + 1 : 0;
      throw error;
    } finally {
      this.#pending -= 1;
      if (this.#isRetired && this.#pending === 0) this.#idle.resolve();
    }
    // Only now: the SDK may still read the buffer of a batch that failed.
    this.#buffers.give(batch.buffer);
  }

  /** Waits for what is in flight, as the SDK's `close` does not. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    const client = await this.#opening?.catch(() => null);
    if (this.#pending > 0) await this.#idle.promise;
    await client?.close();
  }

  async #connect(): Promise<EventHubProducerClient> {
    const client = await createClient(this.#options);
    try {
      const probe = await client.createBatch();
      const { maxBytes } = this.#options;
      // 0 when the link has no limit.
      this.#maxBytes = probe.maxSizeInBytes > 0 ? Math.min(maxBytes, probe.maxSizeInBytes) : maxBytes;
      return client;
    } catch (error) {
      void client.close().catch(() => undefined);
      throw error;
    }
  }
}

async function createClient({ connection, hub, timeout }: ProducerOptions): Promise<EventHubProducerClient> {
  const { EventHubProducerClient: Client } = await import('@azure/event-hubs');
  // The dispatcher retries: retries of the SDK would hide the hub's errors from it, and delay the whole batch.
  const options = { retryOptions: { maxRetries: 0, timeoutInMs: timeout } };
  if (connection.by === 'key') return new Client(connection.connectionString, hub, options);
  return new Client(connection.address, hub, await loadCredential(connection.clientId), options);
}
