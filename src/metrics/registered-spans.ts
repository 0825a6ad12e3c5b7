import {
  context,
  createTraceState,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import type { TraceContext } from '../core/trace.ts';
import { partsOf, type OpenSpan, type SpanStart, type Spans } from './spans.ts';

const KINDS = { server: SpanKind.SERVER, producer: SpanKind.PRODUCER, internal: SpanKind.INTERNAL };

/** Those of the SDK that the process was started with (`node --import ./otel.js …`); null when there is none. */
export function registeredSpans(): Spans | null {
  const provider = trace.getTracerProvider();
  const isUnset =
    provider instanceof ProxyTracerProvider &&
    provider.getDelegate() === new ProxyTracerProvider().getDelegate();
  return isUnset ? null : new RegisteredSpans(trace.getTracer('millrace'));
}

class RegisteredSpans implements Spans {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  start(name: string, { kind, parent, values = {}, link }: SpanStart): OpenSpan {
    const links = link instanceof RegisteredSpan ? [{ context: link.span.spanContext() }] : [];
    const options = { kind: KINDS[kind], attributes: { ...values }, links };
    return new RegisteredSpan(this.#tracer.startSpan(name, options, contextOf(parent)));
  }

  within<T>(span: OpenSpan, call: () => Promise<T>): Promise<T> {
    return context.with(contextOf(span), call);
  }
}

class RegisteredSpan implements OpenSpan {
  readonly span: Span;
  readonly trace: TraceContext | null = null;

  constructor(span: Span) {
    this.span = span;
    if (!span.isRecording()) return;
    const { traceId, spanId, traceFlags, traceState } = span.spanContext();
    const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
    const tracestate = traceState?.serialize() ?? '';
    this.trace = tracestate === '' ? { traceparent } : { traceparent, tracestate };
  }

  set(name: string, value: string | number): void {
    this.span.setAttribute(name, value);
  }

  fail(message?: string): void {
    this.span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) });
  }

  end(): void {
    this.span.end();
  }
}

function contextOf(parent: SpanStart['parent']): Context {
  if (parent instanceof RegisteredSpan) return trace.setSpan(ROOT_CONTEXT, parent.span);
  if (parent === null || !('traceparent' in parent)) return ROOT_CONTEXT;
  const { trace: traceId, span: spanId, flags } = partsOf(parent);
  const { tracestate } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: flags,
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}
