import { z } from 'zod';
import type { Delivery, SendResult } from '../core/sink.ts';
import { orAborted, unlessAborted } from '../lib/abort.ts';
import { bytes, choice, count } from '../lib/fields.ts';
import { ABORTED } from '../vendors/failure.ts';
import type { Compression } from '../vendors/message.ts';

/** Smallest limit for an event or a batch, bytes. */
export const MINIMUM_EVENT = 4096;

/** @param header that names the compression at the broker */
export const compressionField = (header: string) =>
  choice(
    ['auto', 'always', 'never'],
    'auto',
    `\`auto\` compresses bodies above 1 KiB with gzip and says so in \`${header}\`.`,
  );

export const batchField = z
  .strictObject({
    count: count(500, 'Most events per send.', { min: 1, max: 10_000 }),
    bytes: bytes('4MiB', 'Most bytes per send.', { min: MINIMUM_EVENT }),
  })
  .prefault({});

/** The sink's limit for one event. With compression the size is known only in `send`, which refuses what is too large. */
export function eventBytesOf(options: {
  readonly compression: Compression;
  readonly maxEventBytes: number;
}): number {
  return options.compression === 'never' ? options.maxEventBytes : Number.POSITIVE_INFINITY;
}

/** Waits for a connection. @throws Error with `reasonOf` of its error, or as soon as the signal aborts */
export async function opened(
  opening: Promise<unknown>,
  signal: AbortSignal,
  reasonOf: (error: unknown) => string,
): Promise<void> {
  const work = opening.then(() => null, reasonOf);
  const trouble = await unlessAborted(work, signal, 'stopped before the connection was open');
  if (trouble !== null) throw new Error(trouble);
}

/** The batches of a sink that are in flight. */
export class Sends {
  readonly #running = new Set<Promise<void>>();

  /**
   * The results of a batch. When the signal aborts, deliveries without a result are answered `ABORTED`.
   * @param send writes the result of each delivery, once it is final
   */
  async run(
    batch: readonly Delivery[],
    signal: AbortSignal,
    send: (results: SendResult[]) => Promise<void>,
  ): Promise<SendResult[]> {
    const results = Array.from(batch, () => ABORTED);
    if (signal.aborted) return results;
    const work = send(results);
    const settled = work.catch(() => undefined).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    await unlessAborted(work, signal, undefined);
    // A copy: a late confirmation must not change what was answered.
    return [...results];
  }

  /** Waits for all batches in flight. */
  async ended(signal: AbortSignal): Promise<void> {
    await orAborted(Promise.all(this.#running), signal);
  }
}

export const NO_TOPIC: SendResult = {
  status: 'retry',
  reason: 'the route names no topic, and the sink has no default one (topic)',
  sink: true,
};

/** The config is wrong, not the event: it waits until the route is corrected. */
export function badTopic(name: string): SendResult {
  return { status: 'retry', reason: `${JSON.stringify(name)} is not a valid topic name`, sink: true };
}
