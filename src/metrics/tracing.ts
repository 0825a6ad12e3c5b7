import {
  context,
  createTraceState,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Tracer,
} from '@opentelemetry/api';
import type { Attempt, AttemptResult, Tracing } from '../core/tracing.ts';
import { traceOf, type TraceContext } from '../core/trace.ts';
import { TAKEN } from './taken.ts';

/** The tracer of the SDK that the process was started with (`node --import ./otel.js …`); null when there is none. */
export function registeredTracer(): Tracer | null {
  const provider = trace.getTracerProvider();
  const isUnset =
    provider instanceof ProxyTracerProvider &&
    provider.getDelegate() === new ProxyTracerProvider().getDelegate();
  return isUnset ? null : trace.getTracer('millrace');
}

/**
 * One trace from the request to each sink. Attributes say what happened, never to whom: traces leave this machine.
 * @param mayBegin whether a trace is begun for a request that is in none; asked before anything is made for it
 */
export function tracingWith(tracer: Tracer, mayBegin: () => boolean = () => true): Tracing {
  return {
    receive: (headers) => {
      const given = traceOf(headers);
      if (given === null && !mayBegin()) return null;
      const parent = given === null ? ROOT_CONTEXT : contextOf(given);
      const span = tracer.startSpan('millrace receive', { kind: SpanKind.SERVER }, parent);
      if (!span.isRecording()) return null;
      return {
        trace: traceIn(span),
        journal: () => {
          const storing = tracer.startSpan('millrace journal', {}, trace.setSpan(ROOT_CONTEXT, span));
          return () => storing.end();
        },
        end: (outcome, type) => {
          span.setAttribute('millrace.outcome', outcome);
          if (type !== null) span.setAttribute('millrace.event.type', type);
          if (!TAKEN.has(outcome)) span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
          span.end();
        },
      };
    },
    deliver: async (sink, batch, send) => {
      const spans = spansOf(tracer, sink, batch);
      const [first] = spans.values();
      if (first === undefined) return send();
      try {
        // What a sink's own SDK records can be in one trace only.
        const outcomes = await context.with(trace.setSpan(ROOT_CONTEXT, first), send);
        for (const { item, result } of outcomes) note(spans.get(item), result);
        return outcomes;
      } catch (error) {
        for (const span of spans.values()) span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        for (const span of spans.values()) span.end();
      }
    },
  };
}

/** Those after the first are linked to it: it has the calls that were made for all of them. */
function spansOf(tracer: Tracer, sink: string, batch: readonly Attempt[]): Map<Attempt, Span> {
  const spans = new Map<Attempt, Span>();
  let first: Span | null = null;
  for (const item of batch) {
    const given = item.event.handling.trace;
    if (given === undefined || (flagsOf(given) & TraceFlags.SAMPLED) === 0) continue;
    const attributes = {
      'millrace.sink': sink,
      'millrace.attempt': item.attempts,
      'messaging.batch.message_count': batch.length,
    };
    const links = first === null ? [] : [{ context: first.spanContext() }];
    const options = { kind: SpanKind.PRODUCER, attributes, links };
    const span = tracer.startSpan('millrace deliver', options, contextOf(given));
    spans.set(item, span);
    first ??= span;
  }
  return spans;
}

/** Reasons stay in the logs: a broker may put into them what it was given. */
function note(span: Span | undefined, result: AttemptResult['result']): void {
  span?.setAttribute('millrace.result', result.status);
  if (result.status === 'retry') span?.setStatus({ code: SpanStatusCode.ERROR });
  if (result.status === 'refused') span?.setStatus({ code: SpanStatusCode.ERROR, message: result.code });
}

function flagsOf({ traceparent }: TraceContext): number {
  return Number.parseInt(traceparent.slice(53, 55), 16);
}

function contextOf(given: TraceContext): Context {
  const [, traceId = '', spanId = ''] = given.traceparent.split('-');
  const { tracestate } = given;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: flagsOf(given),
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}

function traceIn(span: Span): TraceContext {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  const tracestate = traceState?.serialize() ?? '';
  return tracestate === '' ? { traceparent } : { traceparent, tracestate };
}
