import type { Delivery, SendResult } from '../core/sink.ts';
import { orAborted, unlessAborted } from '../lib/abort.ts';
import { bytes, choice, count } from '../lib/fields.ts';
import { z } from 'zod';
import { ABORTED } from '../vendors/failure.ts';
import type { Compression } from '../vendors/message.ts';

/** Smallest bound for an event or a batch, bytes. */
export const MINIMUM_EVENT = 4096;

/** @param header that says so at the broker */
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

/** The sink's own limit. What fits is known only after compression; `send` finds out before anything is sent. */
export function eventBytesOf(options: {
  readonly compression: Compression;
  readonly maxEventBytes: number;
}): number {
  return options.compression === 'never' ? options.maxEventBytes : Number.POSITIVE_INFINITY;
}

/** @param reasonOf what an operator is told of an error @throws Error with that, and as soon as the signal aborts */
export async function opened(
  opening: Promise<unknown>,
  signal: AbortSignal,
  reasonOf: (error: unknown) => string,
): Promise<void> {
  const work = opening.then(() => null, reasonOf);
  const trouble = await unlessAborted(work, signal, 'stopped before the connection was open');
  if (trouble !== null) throw new Error(trouble);
}

/** The batches that a sink has on their way to its broker. */
export class Sends {
  readonly #running = new Set<Promise<void>>();

  /**
   * The results of a batch. When the signal aborts, those that are there are answered; what has none counts as stopped.
   * @param send puts a result in the place of each delivery, once it is final
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
    // A copy: what is answered must not change when a confirmation comes in after all.
    return [...results];
  }

  /** Waits for what is on the way. */
  async ended(signal: AbortSignal): Promise<void> {
    await orAborted(Promise.all(this.#running), signal);
  }
}

export const NO_TOPIC: SendResult = {
  status: 'retry',
  reason: 'the route names no topic, and the sink has no default one (topic)',
  sink: true,
};

/** A slip in the config, and none of the event's: it waits until the route is corrected. */
export function badTopic(name: string): SendResult {
  return { status: 'retry', reason: `${JSON.stringify(name)} is not a valid topic name`, sink: true };
}
