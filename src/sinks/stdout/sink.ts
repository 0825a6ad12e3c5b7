import type { Writable } from 'node:stream';
import { formatRecords } from '../../core/archive-record.ts';
import { messageOf } from '../../core/errors.ts';
import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { unlessAborted } from '../../lib/abort.ts';
import type { StdoutOptions } from './config.ts';

/** @param stream for tests */
export function createSink(
  _options: StdoutOptions,
  _context: SinkContext,
  stream: Writable = process.stdout,
): Sink {
  return new StdoutSink(stream);
}

/**
 * Writes archive records to a stream, a line each. `delivered` means that the system has the bytes; the reader of a pipe may
 * still lose them. All destinations are the one stream.
 *
 * Modes: `new` → `open` → `closed`. Once the reader is gone (EPIPE) every send is answered `retry` for the whole sink.
 */
export class StdoutSink implements Sink {
  readonly limits = {
    batchCount: 500,
    batchBytes: 2 ** 20,
    eventBytes: Number.POSITIVE_INFINITY,
    inFlight: 1,
    order: 'user',
    batchBy: 'mixed',
  } as const;

  readonly #stream: Writable;
  #failure: string | null = null;
  // A stream's error without a listener would end the process.
  readonly #onError = (error: Error): void => {
    this.#failure = messageOf(error);
  };

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  async open(): Promise<void> {
    if (!this.#stream.writable) throw new Error('stdout is closed');
    this.#failure = null;
    this.#stream.off('error', this.#onError).on('error', this.#onError);
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const result = await this.#write(batch, signal);
    return batch.map(() => result);
  }

  async close(): Promise<void> {
    // Nothing is buffered: every send has waited for the system to take its bytes.
    this.#stream.off('error', this.#onError);
  }

  /** Settles once the stream has the bytes: a slow reader slows the sink, and memory does not grow. */
  #write(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult> {
    if (signal.aborted) return Promise.resolve(ABORTED);
    if (this.#failure !== null) return Promise.resolve(gone(this.#failure));
    const { promise, resolve } = Promise.withResolvers<SendResult>();
    this.#stream.write(formatRecords(batch.map(({ event }) => event)), (error) => {
      resolve(error ? gone(messageOf(error)) : DELIVERED);
    });
    return unlessAborted(promise, signal, ABORTED);
  }
}

const ABORTED: SendResult = { status: 'retry', reason: 'stopped before it was written' };

function gone(reason: string): SendResult {
  return { status: 'retry', reason, sink: true };
}
