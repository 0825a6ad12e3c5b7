import type { TraceContext } from './event.ts';
import type { Delivery, SendResult } from './sink.ts';
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

/** Version, trace id, parent id, flags; versions after 00 may add fields. Neither id may be all zeros. */
const PARENT =
  /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-[\x21-\x7e]{1,200})?$/;
/** The standard asks for at least 512 characters; what is longer may be left out. */
const STATE = /^[\x20-\x7e]{1,512}$/;

/** @returns null without a `traceparent`, or with one that is not well-formed: it is then as if there were none. */
export function traceOf(headers: RequestHeaders): TraceContext | null {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string' || !PARENT.test(traceparent)) return null;
  if (typeof tracestate !== 'string' || !STATE.test(tracestate)) return { traceparent };
  return { traceparent, tracestate };
}
