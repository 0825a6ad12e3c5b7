import type { Delivery } from './sink.ts';
import type { TraceContext } from './trace.ts';
import type { RequestHeaders } from './verifier.ts';

/** The span of one delivery that is being received. */
export interface ReceiveSpan {
  /** What is passed on with the event; null when there is no trace to belong to. */
  readonly trace: TraceContext | null;
  /** @param outcome `accepted`, `duplicate`, …, or the code of a problem */
  end(outcome: string, type: string | null): void;
}

/** Spans for whoever collects them; nobody has one when no collector is registered. */
export interface Tracing {
  receive(headers: RequestHeaders): ReceiveSpan;
  /** A span around one `send` of a batch, linked to the traces of its events. */
  deliver<T>(sink: string, batch: readonly Delivery[], send: () => Promise<T>): Promise<T>;
}
