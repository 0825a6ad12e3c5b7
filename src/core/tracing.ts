import type { TraceContext } from './event.ts';
import type { Delivery, SendResult } from './sink.ts';
import type { RequestHeaders } from './verifier.ts';

/** The span of one delivery that is being received. */
export interface ReceiveSpan {
  /** Passed on with the event. */
  readonly trace: TraceContext;
  /** Begins the span of storing the event. @returns ends it */
  journal(): () => void;
  /** @param outcome `accepted`, `duplicate`, …, or the code of a problem */
  end(outcome: string, type: string | null): void;
}

export interface Attempt extends Delivery {
  /** This attempt included. */
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

/** Version, trace id, parent id, flags; versions after 00 may add fields. No id is all zeros. */
const PARENT =
  /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-[\x21-\x7e]{1,200})?$/;
/** The standard lets us drop more than 512 characters. */
const STATE = /^[\x20-\x7e]{1,512}$/;

/** @returns null without a well-formed `traceparent` */
export function traceOf(headers: RequestHeaders): TraceContext | null {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string' || !PARENT.test(traceparent)) return null;
  if (typeof tracestate !== 'string' || !STATE.test(tracestate)) return { traceparent };
  return { traceparent, tracestate };
}
