import type { Attempt, AttemptResult, Tracing } from '../core/tracing.ts';
import { traceOf } from '../core/trace.ts';
import { isSampled, type OpenSpan, type Spans } from './spans.ts';
import { TAKEN } from './taken.ts';

/** One trace from the request to each sink. Values say what happened, never to whom: traces leave this machine. */
export function tracingWith(spans: Spans): Tracing {
  return {
    receive: (headers) => {
      const span = spans.start('millrace receive', { kind: 'server', parent: traceOf(headers) });
      if (span.trace === null) return null;
      return {
        trace: span.trace,
        journal: () => {
          const storing = spans.start('millrace journal', { kind: 'internal', parent: span });
          return () => storing.end();
        },
        end: (outcome, type) => {
          span.set('millrace.outcome', outcome);
          if (type !== null) span.set('millrace.event.type', type);
          if (!TAKEN.has(outcome)) span.fail(outcome);
          span.end();
        },
      };
    },
    deliver: async (sink, batch, send) => {
      const open = openedFor(spans, sink, batch);
      const [first] = open.values();
      if (first === undefined) return send();
      try {
        // What a sink's own SDK records can be in one trace only.
        const outcomes = await spans.within(first, send);
        for (const { item, result } of outcomes) note(open.get(item), result);
        return outcomes;
      } catch (error) {
        for (const span of open.values()) span.fail();
        throw error;
      } finally {
        for (const span of open.values()) span.end();
      }
    },
  };
}

const NONE: ReadonlyMap<Attempt, OpenSpan> = new Map();

/** Those after the first are linked to it: it has the calls that were made for all of them. */
function openedFor(spans: Spans, sink: string, batch: readonly Attempt[]): ReadonlyMap<Attempt, OpenSpan> {
  let open: Map<Attempt, OpenSpan> | null = null;
  let link: OpenSpan | null = null;
  for (const item of batch) {
    const parent = item.event.handling.trace;
    if (parent === undefined || !isSampled(parent)) continue;
    const values = {
      'millrace.sink': sink,
      'millrace.attempt': item.attempts,
      'messaging.batch.message_count': batch.length,
    };
    const span = spans.start('millrace deliver', { kind: 'producer', parent, values, link });
    open ??= new Map();
    open.set(item, span);
    link ??= span;
  }
  return open ?? NONE;
}

/** Reasons stay in the logs: a broker may put into them what it was given. */
function note(span: OpenSpan | undefined, result: AttemptResult['result']): void {
  span?.set('millrace.result', result.status);
  if (result.status === 'retry') span?.fail();
  if (result.status === 'refused') span?.fail(result.code);
}
