import {
  context,
  createTraceState,
  ROOT_CONTEXT,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import type { SendResult } from '../../core/sink.ts';
import { type Attempt, traceOf, type Tracing } from '../../core/tracing.ts';
import type { TraceContext } from '../../core/event.ts';
import { SUCCESSES } from './meter.ts';

/** One trace from the request to each sink. It has no ids of users: traces leave this machine. */
export function tracingWith(tracer: Tracer): Tracing {
  return {
    receive: (headers) => {
      const span = tracer.startSpan('millrace receive', { kind: SpanKind.SERVER }, within(traceOf(headers)));
      if (!span.isRecording()) return null;
      return {
        trace: traceContextOf(span),
        journal: () => {
          const storing = tracer.startSpan('millrace journal', {}, trace.setSpan(ROOT_CONTEXT, span));
          return () => storing.end();
        },
        end: (outcome, type) => {
          span.setAttribute('millrace.outcome', outcome);
          if (type !== null) span.setAttribute('millrace.event.type', type);
          if (!SUCCESSES.has(outcome)) span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
          span.end();
        },
      };
    },
    deliver: async (sink, batch, send) => {
      const open = startSpans(tracer, sink, batch);
      const [first] = open.values();
      if (first === undefined) return send();
      try {
        // Spans of the sink's own SDK belong to the first trace.
        const results = await context.with(trace.setSpan(ROOT_CONTEXT, first), send);
        for (const [at, item] of batch.entries()) note(open.get(item), results[at]);
        return results;
      } catch (error) {
        for (const span of open.values()) span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        for (const span of open.values()) span.end();
      }
    },
  };
}

const NONE: ReadonlyMap<Attempt, Span> = new Map();

/** A span for each sampled event of the batch; the others link to the first, which has the calls of the sink. */
function startSpans(tracer: Tracer, sink: string, batch: readonly Attempt[]): ReadonlyMap<Attempt, Span> {
  let open: Map<Attempt, Span> | null = null;
  let first: Span | null = null;
  for (const item of batch) {
    const parent = item.event.handling.trace;
    if (parent === undefined || (flagsOf(parent.traceparent) & SAMPLED) === 0) continue;
    const attributes = {
      'millrace.sink': sink,
      'millrace.attempt': item.attempts,
      'messaging.batch.message_count': batch.length,
    };
    const links = first === null ? [] : [{ context: first.spanContext() }];
    const options = { kind: SpanKind.PRODUCER, attributes, links };
    const span = tracer.startSpan('millrace deliver', options, within(parent));
    open ??= new Map();
    open.set(item, span);
    first ??= span;
  }
  return open ?? NONE;
}

/** Without the reason: a broker's message can contain the event. */
function note(span: Span | undefined, result: SendResult | undefined): void {
  if (span === undefined || result === undefined) return;
  span.setAttribute('millrace.result', result.status);
  if (result.status === 'retry') span.setStatus({ code: SpanStatusCode.ERROR });
  if (result.status === 'refused') span.setStatus({ code: SpanStatusCode.ERROR, message: result.code });
}

const SAMPLED = 1;

function flagsOf(traceparent: string): number {
  return Number.parseInt(traceparent.slice(53, 55), 16);
}

/** The context of a parent span in another process. */
function within(parent: TraceContext | null): Context {
  if (parent === null) return ROOT_CONTEXT;
  const { traceparent, tracestate } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: traceparent.slice(3, 35),
    spanId: traceparent.slice(36, 52),
    traceFlags: flagsOf(traceparent),
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}

function traceContextOf(span: Span): TraceContext {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  const tracestate = traceState?.serialize() ?? '';
  return tracestate === '' ? { traceparent } : { traceparent, tracestate };
}
