import type { EventHubConsumerClient, PartitionContext, ReceivedEventData } from '@azure/event-hubs';
import type { Deliver, Source, SourceContext } from '../../core/source.ts';
import { orAborted, untilAborted } from '../../lib/abort.ts';
import { toFailure } from '../../vendors/event-hubs/failure.ts';
import { openBlobStore } from './blob-store.ts';
import { createClient } from './client.ts';
import type { EventHubsSourceOptions } from './config.ts';
import { JournalCheckpoints } from './journal-checkpoints.ts';
import { toIncoming } from './message.ts';
import type { Checkpoints } from './checkpoints.ts';
import { SharedCheckpoints } from './shared-checkpoints.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSource(options: EventHubsSourceOptions, context: SourceContext): Source {
  return new EventHubsSource(options, context);
}

/** Messages of one partition that are handed on together, at most. */
const BATCH = 256;
/** Seconds after which the SDK looks whether the connection is still there while nothing comes. */
const LOOK = 1;
const HOW = { maxBatchSize: BATCH, maxWaitTimeInSeconds: LOOK, skipParsingBodyAsJson: true };

interface Opened {
  readonly client: EventHubConsumerClient;
  readonly checkpoints: Checkpoints;
}

/**
 * Reads the partitions of a hub, each in its order, and remembers for each the last message that was taken: all of them
 * with its checkpoints in the journal, or its share of them with checkpoints that several workers can see.
 *
 * Modes: new → open (by `open`: connected, checkpoints found) → reading (by `run`) → closed. Whatever goes wrong while
 * reading ends `run` with an error, after what was handed on has been settled; `open` then begins anew behind the
 * checkpoints. The SDK would continue behind a message that was not taken: that is why nothing is left to its own retrying.
 */
export class EventHubsSource implements Source {
  readonly #options: EventHubsSourceOptions;
  readonly #context: SourceContext;
  #opened: Opened | null = null;

  constructor(options: EventHubsSourceOptions, context: SourceContext) {
    this.#options = options;
    this.#context = context;
  }

  async open(signal: AbortSignal): Promise<void> {
    // A connection that is gone may never answer that it is closed.
    await this.close(AbortSignal.any([signal, AbortSignal.timeout(this.#options.timeout)]));
    const checkpoints = await this.#checkpointsOf();
    const client = await createClient(this.#options, checkpoints);
    try {
      await client.getPartitionIds({ abortSignal: signal });
      await checkpoints.probe?.(client);
    } catch (error) {
      void client.close().catch(() => undefined);
      throw this.#explained(error);
    }
    this.#opened = { client, checkpoints };
  }

  async run(deliver: Deliver, signal: AbortSignal): Promise<void> {
    if (this.#opened === null) throw new Error('the source is not open');
    const { client, checkpoints } = this.#opened;
    const failed = Promise.withResolvers<never>();
    const taking = new Set<Promise<void>>();
    let subscriptions: Awaited<ReturnType<Checkpoints['subscribe']>> = [];
    let ended = false;
    // At once, so that nothing follows a message that was not taken.
    const fail = (error: unknown): void => {
      ended = true;
      failed.reject(error);
    };
    const take = async (events: readonly ReceivedEventData[], context: PartitionContext): Promise<void> => {
      const now = this.#context.clock.now();
      await deliver(events.map((event) => toIncoming(event, now)));
      const last = events.at(-1);
      if (last !== undefined) await checkpoints.save(last, context);
    };
    const handlers = {
      // The SDK waits for it before it asks for more of the partition.
      processEvents: async (events: readonly ReceivedEventData[], context: PartitionContext) => {
        if (ended || events.length === 0) return;
        const taken = take(events, context);
        taking.add(taken);
        await taken.catch(fail).finally(() => taking.delete(taken));
      },
      processError: async (error: Error) => fail(this.#explained(error)),
    };
    failed.promise.catch(() => undefined);
    try {
      subscriptions = await checkpoints.subscribe(client, handlers, HOW).catch((error: unknown) => {
        throw this.#explained(error);
      });
      await Promise.race([failed.promise, untilAborted(signal)]);
    } finally {
      ended = true;
      const deadline = AbortSignal.timeout(this.#options.timeout);
      // First, so that the last checkpoints stand before another worker may take over.
      await orAborted(
        Promise.allSettled(taking).then(() => checkpoints.finish?.()),
        deadline,
      );
      const closed = Promise.allSettled(subscriptions.map((subscription) => subscription.close()));
      await orAborted(closed, deadline);
      await Promise.allSettled(taking);
    }
  }

  async close(signal: AbortSignal): Promise<void> {
    const closed = this.#opened?.client.close().catch(() => undefined);
    this.#opened = null;
    if (closed !== undefined) await orAborted(closed, signal);
  }

  async #checkpointsOf(): Promise<Checkpoints> {
    const { checkpoints, timeout } = this.#options;
    if (checkpoints.type === 'journal') return new JournalCheckpoints(this.#options, this.#context);
    const store = await openBlobStore(checkpoints, timeout);
    return new SharedCheckpoints(this.#options, this.#context, store);
  }

  #explained(error: unknown): Error {
    return new Error(`event hub ${this.#options.hub}: ${toFailure(error).reason}`, { cause: error });
  }
}
