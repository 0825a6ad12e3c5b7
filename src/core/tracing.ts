import type { Delivery, SendResult } from './sink.ts';
import type { TraceContext } from './trace.ts';
import type { RequestHeaders } from './verifier.ts';

/** The span of one delivery that is being received. */
export interface ReceiveSpan {
  /** What is passed on with the event. */
  readonly trace: TraceContext;
  /** Begins the span of storing the event. @returns what ends it */
  journal(): () => void;
  /** @param outcome `accepted`, `duplicate`, …, or the code of a problem */
  end(outcome: string, type: string | null): void;
}

/** One event of a batch, as it is tried. */
export interface Attempt extends Delivery {
  /** How often it was tried, this time included. */
  readonly attempts: number;
}

/** Makes the spans of traces, where they are collected. */
export interface Tracing {
  /** @returns null for a delivery that is not sampled, which costs no more than this call */
  receive(headers: RequestHeaders): ReceiveSpan | null;
  /** A span for each event of a batch whose trace is sampled, in that trace. */
  deliver(
    sink: string,
    batch: readonly Attempt[],
    send: () => Promise<readonly SendResult[]>,
  ): Promise<readonly SendResult[]>;
}
