import { context, trace, type Span, type TracerProvider } from '@opentelemetry/api';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { traceOf, type Tracing } from '../../../src/core/tracing.ts';
import { openTraces } from '../../../src/observe/metrics/otlp.ts';
import { toMessage as toEventHubs } from '../../../src/vendors/event-hubs/message.ts';
import { toMessage as toPubSub } from '../../../src/sinks/pubsub/message.ts';
import { makeEvent } from '../../support/events.ts';

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

test('brokers get the trace as properties and attributes', () => {
  const event = {
    ...makeEvent(),
    seq: 1,
    handling: { trace: { traceparent: PARENT, tracestate: 'made=up' } },
  };
  const { properties } = toEventHubs(event, event.body, false);
  expect(properties).toMatchObject({ traceparent: PARENT, tracestate: 'made=up' });
  const { attributes } = toPubSub(event, event.body, false, false);
  expect(attributes).toMatchObject({ traceparent: PARENT, tracestate: 'made=up' });
  const without = toPubSub({ ...event, handling: {} }, event.body, false, false);
  expect(Object.keys(without.attributes)).not.toContain('traceparent');
});

interface Recorded {
  readonly name: string;
  readonly parent: string | undefined;
  readonly links: readonly string[];
  readonly attributes: Record<string, unknown>;
  status: { readonly code: number; readonly message?: string } | null;
  ended: boolean;
}

/** A collector as small as the API lets it be, instead of an SDK. */
function registerCollector(isRecording = true): Recorded[] {
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
          isRecording: () => isRecording,
          setAttribute: (key: string, value: unknown) => (recorded.attributes[key] = value),
          setStatus: (status: { code: number }) => (recorded.status = status),
          end: () => (recorded.ended = true),
        } as unknown as Span;
      },
      startActiveSpan: () => {
        throw new Error('not used');
      },
    }),
  };
  trace.setGlobalTracerProvider(provider);
  return spans;
}

const traced = (parent: string | null) => ({
  event: {
    ...makeEvent(),
    seq: 1,
    handling: parent === null ? {} : { trace: { traceparent: parent } },
  },
  destination: null,
  attempts: 2,
});

const warnings: object[] = [];
const warn = (detail: object): void => void warnings.push(detail);
async function tracing(): Promise<Tracing> {
  return (await openTraces(warn)).made ?? expect.fail('nothing collects');
}

function setEnvironment(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
}

describe('spans', () => {
  afterEach(() => {
    trace.disable();
    context.disable();
    vi.unstubAllEnvs();
    warnings.length = 0;
  });

  test.each([
    ['no one collects them', {}],
    ['switched off', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1', OTEL_SDK_DISABLED: 'TRUE' }],
    ['sent elsewhere', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1', OTEL_TRACES_EXPORTER: 'none' }],
  ])('%s: there are none, and nothing to ask', async (_name, env) => {
    setEnvironment(env);
    expect((await openTraces(warn)).made).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  test.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317/token-of-acme'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'http://'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'http/json'],
  ])('%s=%s is warned of by its name, and nothing is exported', async (variable, value) => {
    setEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', [variable]: value });
    expect((await openTraces(warn)).made).toBeUndefined();
    expect(warnings).toMatchObject([{ variable }]);
    expect(JSON.stringify(warnings)).not.toContain('token-of-acme');
  });

  test('a delivery has one, inside the trace it came with, and its event continues with it', async () => {
    const spans = registerCollector();
    const received = (await tracing()).receive({ traceparent: PARENT });
    received?.journal()();
    received?.end('signature_invalid', null);
    expect(received?.trace).toEqual({ traceparent: `00-${'a'.repeat(32)}-0000000000000001-01` });
    expect(spans).toMatchObject([
      {
        name: 'millrace receive',
        parent: 'b7ad6b7169203331',
        attributes: { 'millrace.outcome': 'signature_invalid' },
        status: { code: 2 },
        ended: true,
      },
      { name: 'millrace journal', parent: '0000000000000001', ended: true },
    ]);
  });

  test('what is not sampled has no more than that', async () => {
    const spans = registerCollector(false);
    expect((await tracing()).receive({ traceparent: PARENT })).toBeNull();
    expect(spans).toMatchObject([{ ended: false }]);
  });

  test('each sampled event of a batch has one in its own trace, with what became of it', async () => {
    const spans = registerCollector();
    const other = PARENT.replace('b7ad6b7169203331', 'c'.repeat(16));
    const batch = [traced(null), traced(PARENT), traced(PARENT.replace(/1$/, '0')), traced(other)];
    const results = [
      { status: 'delivered' },
      { status: 'refused', code: 'too_large', reason: 'of user-1' },
      { status: 'delivered' },
      { status: 'retry', reason: 'busy with user-1' },
    ] as const;
    const { deliver } = await tracing();
    expect(await deliver('archive', batch, () => Promise.resolve(results))).toBe(results);
    const error = new Error('made up');
    await expect(deliver('archive', batch, () => Promise.reject(error))).rejects.toThrow(error);
    const attributes = {
      'millrace.sink': 'archive',
      'millrace.attempt': 2,
      'messaging.batch.message_count': 4,
    };
    const first = { name: 'millrace deliver', parent: 'b7ad6b7169203331', links: [], ended: true };
    const second = { name: 'millrace deliver', parent: 'c'.repeat(16), ended: true };
    const refused = { ...attributes, 'millrace.result': 'refused' };
    const retried = { ...attributes, 'millrace.result': 'retry' };
    expect(spans).toEqual([
      { ...first, attributes: refused, status: { code: 2, message: 'too_large' } },
      { ...second, links: ['0000000000000001'], attributes: retried, status: { code: 2 } },
      { ...first, attributes, status: { code: 2 } },
      { ...second, links: ['0000000000000003'], attributes, status: { code: 2 } },
    ]);
  });
});
