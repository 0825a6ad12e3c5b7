import type { Tracer } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import { messageOf } from '../core/errors.ts';
import type { Tracing } from '../core/tracing.ts';
import { registeredTracer, tracingWith } from './tracing.ts';

/** What records spans, and what stops that. */
export interface Traces {
  /** Null when nothing collects spans: they then cost nothing, not even the asking. */
  readonly tracing: Tracing | null;
  /** Sends what is left, for a moment. */
  stop(): Promise<void>;
}

type Warn = (detail: object, message: string) => void;

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];
const PROTOCOL = 'http/protobuf';
const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]);
const DECIDED_HERE = 'parentbased_traceidratio';
const INSTALL =
  'npm install @opentelemetry/sdk-trace-base@^2.12.1 @opentelemetry/resources@^2.12.1 @opentelemetry/exporter-trace-otlp-proto@^0.223.1';
/** `ExportResultCode.SUCCESS`, of a package that is loaded only for its value. */
const EXPORTED = 0;
/** Milliseconds that a stop waits for a collector. */
const STOP_WITHIN = 2000;
const NONE: Traces = { tracing: null, stop: () => Promise.resolve() };

/**
 * Spans for the SDK that the process was started with or else, where the environment names a collector, for that one by
 * OTLP. Whatever stands in the way of traces is a warning: a receiver without them is better than none.
 * @param env that of the process, which the SDK reads by itself
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export async function openTraces(warn: Warn, env = process.env): Promise<Traces> {
  const registered = registeredTracer();
  if (registered !== null) return { ...NONE, tracing: tracingWith(registered) };
  const endpoint = ENDPOINTS.find((name) => (env[name] ?? '').trim() !== '');
  if (endpoint === undefined || isOff(env)) return NONE;
  const fault = faultOf(env, endpoint);
  if (fault !== null) {
    warn(fault, 'no traces are exported');
    return NONE;
  }
  try {
    const share = shareOfBegun(env);
    const { tracer, stop } = await startExporting(warn, share !== null);
    return { tracing: tracingWith(tracer, share === null ? undefined : () => Math.random() < share), stop };
  } catch (error) {
    warn(
      { error: messageOf(error), install: INSTALL },
      `no traces are exported: ${endpoint} needs packages that are not installed beside millrace`,
    );
    return NONE;
  }
}

function isOff(env: NodeJS.ProcessEnv): boolean {
  const exporter = env['OTEL_TRACES_EXPORTER'] ?? 'otlp';
  return env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || !exporter.split(',').includes('otlp');
}

/** Values are left out where they can hold a token. */
function faultOf(env: NodeJS.ProcessEnv, endpoint: string): object | null {
  if (!/^https?:/.test(env[endpoint] ?? '') || !URL.canParse(env[endpoint] ?? ''))
    return { variable: endpoint, detail: 'is no http or https address' };
  const protocol = PROTOCOLS.find((name) => (env[name] ?? PROTOCOL) !== PROTOCOL);
  if (protocol !== undefined)
    return { variable: protocol, detail: `only ${PROTOCOL} is spoken, usually on port 4318` };
  const sampler = env['OTEL_TRACES_SAMPLER'];
  if (sampler !== undefined && sampler !== '' && !SAMPLERS.includes(sampler))
    return { variable: 'OTEL_TRACES_SAMPLER', detail: `is none of ${SAMPLERS.join(', ')}` };
  const share = env['OTEL_TRACES_SAMPLER_ARG'];
  if (share !== undefined && share !== '' && !(Number(share) >= 0 && Number(share) <= 1))
    return { variable: 'OTEL_TRACES_SAMPLER_ARG', detail: 'is no number from 0 to 1' };
  return null;
}

/**
 * The share of traces that are begun here, where it is decided here: the SDK makes two random ids and a span for each event
 * before it asks its sampler, which costs more than all the rest of an event that is not traced. Null leaves it to the SDK.
 */
function shareOfBegun(env: NodeJS.ProcessEnv): number | null {
  if (env['OTEL_TRACES_SAMPLER'] !== DECIDED_HERE) return null;
  const share = env['OTEL_TRACES_SAMPLER_ARG'] ?? '';
  return share === '' ? 1 : Number(share);
}

/**
 * Loads the SDK. It reads the other variables itself: headers, certificates, time-outs, the sampler, the queue.
 * @param isBegunHere it takes all that is begun, and what the sender has sampled
 */
async function startExporting(
  warn: Warn,
  isBegunHere: boolean,
): Promise<{ tracer: Tracer; stop: () => Promise<void> }> {
  const [sdk, resources, otlp] = await Promise.all([
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
  ]);
  const exporter = new Told(new otlp.OTLPTraceExporter(), warn);
  const own = resources.resourceFromAttributes({ 'service.name': 'millrace' });
  const provider = new sdk.BasicTracerProvider({
    resource: resources
      .defaultResource()
      .merge(own)
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    ...(isBegunHere ? { sampler: new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() }) } : {}),
    spanProcessors: [new sdk.BatchSpanProcessor(exporter)],
  });
  const stop = async (): Promise<void> => {
    const over = new Promise<void>((resolve) => void setTimeout(resolve, STOP_WITHIN).unref());
    await Promise.race([provider.shutdown().catch(() => undefined), over]);
  };
  return { tracer: provider.getTracer('millrace'), stop };
}

/** Says once that a collector does not take spans, and how many it has missed when it does again. */
class Told implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #warn: Warn;
  #missed = 0;

  constructor(exporter: SpanExporter, warn: Warn) {
    this.#exporter = exporter;
    this.#warn = warn;
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.#exporter.export(spans, (result) => {
      const code: number = result.code;
      const failed = code !== EXPORTED;
      if (failed && this.#missed === 0)
        this.#warn({ error: messageOf(result.error) }, 'the collector does not take spans; they are dropped');
      if (!failed && this.#missed > 0)
        this.#warn({ missed: this.#missed }, 'the collector takes spans again');
      this.#missed = failed ? this.#missed + spans.length : 0;
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
