import type { TraceContext } from '../core/trace.ts';

/** What a span says of what happened. */
export type SpanValues = Readonly<Record<string, string | number>>;

export interface SpanStart {
  readonly kind: 'server' | 'producer' | 'internal';
  /** The span it is part of: one of this process, or one of another and as that one said it. */
  readonly parent: OpenSpan | TraceContext | null;
  readonly values?: SpanValues;
  /** A span of another trace that says more. */
  readonly link?: OpenSpan | null;
}

/** A span that has begun. */
export interface OpenSpan {
  /** What is passed on; null when nobody keeps this span. */
  readonly trace: TraceContext | null;
  set(name: string, value: string | number): void;
  /** @param message a code, or nothing */
  fail(message?: string): void;
  /** Called once. */
  end(): void;
}

/** What makes spans: an SDK in this process, or notes for one in a thread. */
export interface Spans {
  start(name: string, start: SpanStart): OpenSpan;
  /** Calls it as a part of the span, for those who record more in there. */
  within<T>(span: OpenSpan, call: () => Promise<T>): Promise<T>;
}

/** What a well-formed `traceparent` says: the trace's id in 32 hex digits, the span's in 16, and the flags. */
export function partsOf({ traceparent }: TraceContext): { trace: string; span: string; flags: number } {
  return {
    trace: traceparent.slice(3, 35),
    span: traceparent.slice(36, 52),
    flags: Number.parseInt(traceparent.slice(53, 55), 16),
  };
}

export function isSampled(trace: TraceContext): boolean {
  return (partsOf(trace).flags & 1) === 1;
}
