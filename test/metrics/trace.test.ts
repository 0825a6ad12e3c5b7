import { context, propagation, trace, type Span, type TracerProvider } from '@opentelemetry/api';
import { afterEach, describe, expect, test } from 'vitest';
import { traceOf } from '../../src/core/trace.ts';
import { createTracing } from '../../src/metrics/tracing.ts';
import { toMessage as toEventHubs } from '../../src/sinks/event-hubs/message.ts';
import { toMessage as toPubSub } from '../../src/sinks/pubsub/message.ts';
import { makeEvent } from '../support/events.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test.each([
  ['a plain one', PARENT, true],
  ['a later version with more fields', `cc${PARENT.slice(2)}-more`, true],
  ['version 00 with more fields', `${PARENT}-more`, false],
  ['version ff', `ff${PARENT.slice(2)}`, false],
  ['no trace id', PARENT.replace('0af7651916cd43dd8448eb211c80319c', '0'.repeat(32)), false],
  ['no parent id', PARENT.replace('b7ad6b7169203331', '0'.repeat(16)), false],
  ['upper case', PARENT.toUpperCase(), false],
  ['cut short', PARENT.slice(0, -1), false],
  ['empty', '', false],
  ['with a line break', `${PARENT}\n`, false],
])('traceparent: %s', (_name, traceparent, good) => {
  expect(traceOf({ traceparent })).toEqual(good ? { traceparent } : null);
});

test('tracestate goes along where there is a trace to go with, and it is not too long', () => {
  expect(traceOf({ traceparent: PARENT, tracestate: 'made=up' })).toEqual({
    traceparent: PARENT,
    tracestate: 'made=up',
  });
  expect(traceOf({ tracestate: 'made=up' })).toBeNull();
  expect(traceOf({ traceparent: PARENT, tracestate: `a=${'b'.repeat(600)}` })).toEqual({
    traceparent: PARENT,
  });
});

test('brokers get the trace as properties and attributes', async () => {
  const event = {
    ...makeEvent(),
    seq: 1,
    handling: { trace: { traceparent: PARENT, tracestate: 'made=up' } },
  };
  const { properties } = await toEventHubs(event, 'auto');
  expect(properties).toMatchObject({ traceparent: PARENT, tracestate: 'made=up' });
  const { attributes } = await toPubSub(event, { compression: 'auto', ordering: false });
  expect(attributes).toMatchObject({ traceparent: PARENT, tracestate: 'made=up' });
  const without = await toPubSub({ ...event, handling: {} }, { compression: 'auto', ordering: false });
  expect(Object.keys(without.attributes)).not.toContain('traceparent');
});

interface Recorded {
  readonly name: string;
  readonly parent: string | undefined;
  readonly links: readonly string[];
  readonly attributes: Record<string, unknown>;
  status: number | null;
  ended: boolean;
}

/** A collector as small as the API lets it be, instead of an SDK. */
function registerCollector(): Recorded[] {
  const spans: Recorded[] = [];
  const provider: TracerProvider = {
    getTracer: () => ({
      startSpan: (name, options, parent) => {
        const spanContext = {
          traceId: 'a'.repeat(32),
          spanId: String(spans.length + 1).padStart(16, '0'),
          traceFlags: 1,
        };
        const recorded: Recorded = {
          name,
          parent: parent === undefined ? undefined : trace.getSpanContext(parent)?.spanId,
          links: (options?.links ?? []).map(({ context: linked }) => linked.spanId),
          attributes: { ...options?.attributes },
          status: null,
          ended: false,
        };
        spans.push(recorded);
        return {
          spanContext: () => spanContext,
          setAttribute: (key: string, value: unknown) => (recorded.attributes[key] = value),
          setStatus: ({ code }: { code: number }) => (recorded.status = code),
          end: () => (recorded.ended = true),
        } as unknown as Span;
      },
      startActiveSpan: () => {
        throw new Error('not used');
      },
    }),
  };
  trace.setGlobalTracerProvider(provider);
  propagation.setGlobalPropagator({
    fields: () => ['traceparent'],
    inject: (from, carrier) => {
      const found = trace.getSpanContext(from);
      if (found !== undefined) Object(carrier)['traceparent'] = `00-${found.traceId}-${found.spanId}-01`;
    },
    extract: (to, carrier) => {
      const [, traceId = '', spanId = ''] = String(Object(carrier)['traceparent']).split('-');
      return trace.setSpanContext(to, { traceId, spanId, traceFlags: 1, isRemote: true });
    },
  });
  return spans;
}

describe('spans', () => {
  afterEach(() => {
    trace.disable();
    propagation.disable();
    context.disable();
  });

  test('nobody collects them: there are none, and nothing to ask', () => {
    expect(createTracing()).toBeNull();
  });

  test('a delivery has one, inside the trace it came with, and its event continues with it', () => {
    const spans = registerCollector();
    const received = createTracing()?.receive({ traceparent: PARENT });
    received?.end('signature_invalid', null);
    expect(received?.trace).toEqual({ traceparent: `00-${'a'.repeat(32)}-0000000000000001-01` });
    expect(spans).toEqual([
      {
        name: 'millrace receive',
        parent: 'b7ad6b7169203331',
        links: [],
        attributes: { 'millrace.outcome': 'signature_invalid' },
        status: 2,
        ended: true,
      },
    ]);
  });

  test('a batch has one, linked to its events; an error of the sink ends it too', async () => {
    const spans = registerCollector();
    const tracing = createTracing();
    const event = { ...makeEvent(), seq: 1, handling: { trace: { traceparent: PARENT } } };
    const batch = [
      { event, destination: null },
      { event: { ...event, handling: {} }, destination: null },
    ];
    expect(await tracing?.deliver('archive', batch, () => Promise.resolve('sent'))).toBe('sent');
    await expect(
      tracing?.deliver('archive', batch, () => Promise.reject(new Error('made up'))),
    ).rejects.toThrow('made up');
    const attributes = { 'millrace.sink': 'archive', 'messaging.batch.message_count': 2 };
    const common = {
      name: 'millrace deliver',
      parent: undefined,
      links: ['b7ad6b7169203331'],
      attributes,
      ended: true,
    };
    expect(spans).toEqual([
      { ...common, status: null },
      { ...common, status: 2 },
    ]);
  });
});
