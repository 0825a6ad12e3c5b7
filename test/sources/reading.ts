import { onTestFinished } from 'vitest';
import type { Source } from '../../src/core/source.ts';
import type { IncomingMessage } from '../../src/core/ingest.ts';
import { signal } from '../sinks/support.ts';
import { within } from '../support/until.ts';

const CLOSE_MS = 5000;

export type Take = (batch: readonly IncomingMessage[]) => Promise<void>;

/** One life of a source: what it has handed over so far, and its end. */
export interface Reading {
  readonly messages: IncomingMessage[];
  /** Null, or what it failed with. */
  readonly ended: Promise<unknown>;
  readonly stop: () => Promise<void>;
}

/** Opens a source and lets it run until it is stopped, at the latest with the test, or fails. */
export async function startReading(source: Source, take: Take = () => Promise.resolve()): Promise<Reading> {
  await source.open(signal);
  const messages: IncomingMessage[] = [];
  const abort = new AbortController();
  const deliver: Take = async (batch) => {
    await take(batch);
    messages.push(...batch);
  };
  const ended = source.run(deliver, abort.signal).then(
    () => null,
    (error: unknown) => error,
  );
  const stop = async (): Promise<void> => {
    abort.abort();
    await within('the end of reading', ended);
    // Does not wait for a broker that has cut the connection.
    await source.close(AbortSignal.timeout(CLOSE_MS));
  };
  onTestFinished(stop);
  return { messages, ended, stop };
}

export const idsOf = (messages: readonly IncomingMessage[]): string[] =>
  messages.map(({ properties }) => properties['idempotency-key'] ?? '');

/** The ids of the events from one number up to, and without, another. */
export const range = (from: number, to: number): Set<string> =>
  new Set(Array.from({ length: to - from }, (_, i) => `msg_${from + i}`));
