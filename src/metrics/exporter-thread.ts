import { parentPort } from 'node:worker_threads';
import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import type { IdGenerator, ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import { messageOf } from '../core/errors.ts';
import type { Order, Report, SpanIds, SpanNote } from './span-note.ts';

// The only program that loads the SDK, which reads its variables itself: headers, certificates, time-outs, the queue, the resource.

/** `ExportResultCode.SUCCESS`, of a package that is loaded only for its value. */
const EXPORTED = 0;
const KINDS = { server: SpanKind.SERVER, producer: SpanKind.PRODUCER, internal: SpanKind.INTERNAL };

const port = parentPort;
if (port === null) throw new Error('exporting runs as a worker thread only');
const report = (what: Report): void => port.postMessage(what, []);

/** Says once that a collector does not take spans, and how many it has missed when it does again. */
class Told implements SpanExporter {
  readonly #exporter: SpanExporter;
  #missed = 0;

  constructor(exporter: SpanExporter) {
    this.#exporter = exporter;
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.#exporter.export(spans, (result) => {
      const code: number = result.code;
      const failed = code !== EXPORTED;
      const { length } = spans;
      report({ settled: length });
      if (failed && this.#missed === 0) {
        const warning = 'the collector does not take spans; they are dropped';
        report({ warning, detail: { error: messageOf(result.error) } });
      }
      if (!failed && this.#missed > 0)
        report({ warning: 'the collector takes spans again', detail: { missed: this.#missed } });
      this.#missed = failed ? this.#missed + length : 0;
      done(result);
    });
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}

/** The ids that the span to be made has already. */
class NotedIds implements IdGenerator {
  next = { trace: '', id: '' };

  generateTraceId(): string {
    return this.next.trace;
  }

  generateSpanId(): string {
    return this.next.id;
  }
}

async function load(ids: IdGenerator) {
  const [sdk, resources, otlp] = await Promise.all([
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
  ]);
  const own = resources.resourceFromAttributes({ 'service.name': 'millrace' });
  return new sdk.BasicTracerProvider({
    resource: resources
      .defaultResource()
      .merge(own)
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    // What is noted was decided on.
    sampler: new sdk.AlwaysOnSampler(),
    idGenerator: ids,
    spanProcessors: [new sdk.BatchSpanProcessor(new Told(new otlp.OTLPTraceExporter()))],
  });
}

/** Makes a span of what was noted of it, and ends it, which hands it to the exporter. */
function make(tracer: Tracer, note: SpanNote): void {
  const { name, kind, values, start, duration, failure, link } = note;
  const links = link === null ? [] : [{ context: spanContextOf(link, TraceFlags.SAMPLED) }];
  const options = { kind: KINDS[kind], attributes: { ...values }, startTime: timeOf(start), links };
  const span = tracer.startSpan(name, options, contextOf(note));
  if (failure !== null)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(failure === '' ? {} : { message: failure }) });
  span.end(timeOf(start + duration));
}

function contextOf({ trace: traceId, parent, state }: SpanNote): Context {
  if (parent === null) return ROOT_CONTEXT;
  const context = spanContextOf({ trace: traceId, id: parent.id, state }, parent.flags);
  return trace.setSpanContext(ROOT_CONTEXT, { ...context, isRemote: parent.isRemote });
}

function spanContextOf({ trace: traceId, id: spanId, state }: SpanIds, traceFlags: number): SpanContext {
  return { traceId, spanId, traceFlags, ...(state === '' ? {} : { traceState: createTraceState(state) }) };
}

/** Seconds and nanoseconds; as a mere number a time before this thread's start would be taken for one since then. */
function timeOf(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}

const stopped = (): void => report('stopped');
const ids = new NotedIds();
try {
  const provider = await load(ids);
  const tracer = provider.getTracer('millrace');
  port.on('message', (order: Order) => {
    // It fails with its last export, which is told of by then.
    if (order === 'stop') void provider.shutdown().then(stopped, stopped);
    else for (const note of order) make(tracer, (ids.next = note));
  });
} catch (error) {
  report({ unable: messageOf(error) });
}
