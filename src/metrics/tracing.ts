import {
  context,
  propagation,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Link,
  type Tracer,
} from '@opentelemetry/api';
import type { Delivery } from '../core/sink.ts';
import { traceOf, type TraceContext } from '../core/trace.ts';
import type { Tracing } from '../core/tracing.ts';
import { TAKEN } from './taken.ts';

/** More links than this say no more about a batch. */
const MAX_LINKS = 128;

/**
 * Spans by the OpenTelemetry API, for the SDK that the process was started with (`node --import ./otel.js …`).
 * @returns null when there is none: spans then cost nothing, not even the asking
 */
export function createTracing(): Tracing | null {
  const provider = trace.getTracerProvider();
  const isUnset =
    provider instanceof ProxyTracerProvider &&
    provider.getDelegate() === new ProxyTracerProvider().getDelegate();
  return isUnset ? null : tracingWith(trace.getTracer('millrace'));
}

function tracingWith(tracer: Tracer): Tracing {
  return {
    receive: (headers) => {
      const given = traceOf(headers);
      const span = tracer.startSpan('millrace receive', { kind: SpanKind.SERVER }, contextOf(given));
      return {
        // An event that is not sampled here still belongs to the trace it came with.
        trace: traceIn(trace.setSpan(ROOT_CONTEXT, span)) ?? given,
        end: (outcome, type) => {
          span.setAttribute('millrace.outcome', outcome);
          if (type !== null) span.setAttribute('millrace.event.type', type);
          if (!TAKEN.has(outcome)) span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
          span.end();
        },
      };
    },
    deliver: async (sink, batch, send) => {
      const attributes = { 'millrace.sink': sink, 'messaging.batch.message_count': batch.length };
      const links = linksOf(batch);
      const span = tracer.startSpan('millrace deliver', { kind: SpanKind.PRODUCER, attributes, links });
      try {
        return await context.with(trace.setSpan(ROOT_CONTEXT, span), send);
      } catch (error) {
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
  };
}

function contextOf(given: TraceContext | null): Context {
  return given === null ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, given);
}

/** What the registered propagator writes, as far as it is W3C. */
function traceIn(from: Context): TraceContext | null {
  const carrier: Record<string, string> = {};
  propagation.inject(from, carrier);
  return traceOf(carrier);
}

function linksOf(batch: readonly Delivery[]): Link[] {
  const links: Link[] = [];
  for (const { event } of batch) {
    const { trace: given } = event.handling;
    if (given === undefined) continue;
    const spanContext = trace.getSpanContext(contextOf(given));
    if (spanContext !== undefined) links.push({ context: spanContext });
    if (links.length === MAX_LINKS) break;
  }
  return links;
}
