import type { EventHubProducerClient } from '@azure/event-hubs';
import { BufferPool } from '../../lib/buffer-pool.ts';
import { Batch, roomFor } from './batch.ts';
import { loadCredential, type Connection } from './connection.ts';
import { toFailure } from './failure.ts';
import type { Message } from './message.ts';

export interface ProducerOptions {
  readonly connection: Connection;
  readonly hub: string;
  /** Milliseconds an operation may take. */
  readonly timeout: number;
  /** Largest message, bytes; the link's own limit holds if it is smaller. */
  readonly maxBytes: number;
}

/** So many operations that failed in a row, and the connection is not trusted to mend itself any more. */
const FAILURES = 3;

/**
 * The way to one hub: a client of the SDK with its connection and its link. The SDK connects again by itself when it
 * notices that the connection is gone.
 *
 * Modes: new → open (by `open`: the link stands and its limit is known) → retired (by `retire`: nothing new is sent, and
 * the client is closed once what is on the way has been answered). A failed `open` leaves it new.
 */
export class Producer {
  readonly #options: ProducerOptions;
  readonly #buffers = new BufferPool();
  #opening: Promise<EventHubProducerClient> | null = null;
  #maxBytes = 0;
  #pending = 0;
  #failures = 0;
  #retired = false;
  #idle: () => void = () => {};

  constructor(options: ProducerOptions) {
    this.#options = options;
  }

  get hub(): string {
    return this.#options.hub;
  }

  /** For messages. */
  get place(): string {
    return `event hub ${this.#options.hub}`;
  }

  /** True once it should be replaced by a new one. */
  get worn(): boolean {
    return this.#failures >= FAILURES;
  }

  /** Connects and opens a link for sending, which is all that `send` will need. Throws the SDK's errors. */
  async open(): Promise<EventHubProducerClient> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /** The first of the messages, as many as the hub takes at once; none when even the first is too large. */
  async pack(key: string | null, messages: readonly Message[]): Promise<Batch> {
    await this.open();
    const most = this.#maxBytes;
    const batch = new Batch(key, most, this.#buffers.take(roomFor(key, most, messages)));
    for (const message of messages) if (!batch.tryAdd(message)) break;
    return batch;
  }

  /** Resolves when the hub has confirmed the batch, which is not used any more then; throws the SDK's errors. */
  async send(batch: Batch, abortSignal: AbortSignal): Promise<void> {
    const client = await this.open();
    await this.#count(() => client.sendBatch(batch, { abortSignal }));
    this.#failures = 0;
    // One that failed may still be read; one that was confirmed has been.
    this.#buffers.give(batch.buffer);
  }

  /** Waits for what is on the way: the SDK's own `close` does not. */
  async retire(): Promise<void> {
    this.#retired = true;
    const client = await this.#opening?.catch(() => null);
    if (this.#pending > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
    await client?.close();
  }

  async #connect(): Promise<EventHubProducerClient> {
    const client = await createClient(this.#options);
    try {
      const probe = await client.createBatch();
      const { maxBytes } = this.#options;
      // A link that names none, or 0, has no limit of its own.
      this.#maxBytes = probe.maxSizeInBytes > 0 ? Math.min(maxBytes, probe.maxSizeInBytes) : maxBytes;
      return client;
    } catch (error) {
      void client.close().catch(() => undefined);
      throw error;
    }
  }

  async #count<T>(operation: () => Promise<T>): Promise<T> {
    // A closed client of the SDK would quietly connect again.
    if (this.#retired) throw new Error('the connection was replaced');
    this.#pending += 1;
    try {
      return await operation();
    } catch (error) {
      this.#note(error);
      throw error;
    } finally {
      this.#pending -= 1;
      if (this.#pending === 0) this.#idle();
    }
  }

  #note(error: unknown): void {
    this.#failures = toFailure(error).kind === 'lost' ? this.#failures + 1 : 0;
  }
}

async function createClient({ connection, hub, timeout }: ProducerOptions): Promise<EventHubProducerClient> {
  const { EventHubProducerClient: Client } = await import('@azure/event-hubs');
  // Retrying is the dispatcher's: the SDK's own would hide from it what the hub says, and hold up the whole batch.
  const options = { retryOptions: { maxRetries: 0, timeoutInMs: timeout } };
  if (connection.by === 'key') return new Client(connection.connectionString, hub, options);
  return new Client(connection.address, hub, await loadCredential(connection.clientId), options);
}
