import { setTimeout as wait } from 'node:timers/promises';
import { diag, DiagLogLevel, ProxyTracerProvider, trace } from '@opentelemetry/api';
import { messageOf } from '../../core/errors.ts';
import type { Tracing } from '../../core/tracing.ts';
import { installCommand } from '../../lib/installed.ts';
import type { Started } from '../../lib/parts.ts';
import { tracingWith } from './tracing.ts';

type Warn = (detail: object, message: string) => void;

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];
const PROTOCOL = 'http/protobuf';
const PACKAGES = [
  '@opentelemetry/sdk-trace-base@^2.12.1',
  '@opentelemetry/resources@^2.12.1',
  '@opentelemetry/exporter-trace-otlp-proto@^0.223.1',
];
const STOP_WITHIN_MS = 2000;
const WARN_EVERY_MS = 60_000;
const NONE = { made: undefined };

/**
 * Traces for the SDK that the process was started with (`node --import ./otel.js …`), else for the collector that the environment
 * names, by OTLP; undefined without either. Problems are only warnings. `stop` exports the last spans, within two seconds.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export async function openTraces(warn: Warn): Promise<Started<Tracing | undefined>> {
  if (isSdkRegistered()) return { made: tracingWith(trace.getTracer('millrace')) };
  const { env } = process;
  const endpoint = ENDPOINTS.find((name) => (env[name] ?? '').trim() !== '');
  if (endpoint === undefined || isOff(env)) return NONE;
  const fault = faultOf(env, endpoint);
  if (fault !== null) {
    warn(fault, 'no traces are exported');
    return NONE;
  }
  try {
    logFaults(warn);
    const provider = await loadProvider();
    return {
      made: tracingWith(provider.getTracer('millrace')),
      stop: async () => {
        // The SDK has reported a failed last export.
        const stopped = provider.shutdown().catch(() => undefined);
        await Promise.race([stopped, wait(STOP_WITHIN_MS, undefined, { ref: false })]);
      },
    };
  } catch (error) {
    const detail = { error: messageOf(error), install: installCommand(...PACKAGES) };
    warn(detail, `no traces are exported: ${endpoint} needs packages that are not installed beside millrace`);
    return NONE;
  }
}

function isSdkRegistered(): boolean {
  const provider = trace.getTracerProvider();
  return !(
    provider instanceof ProxyTracerProvider &&
    provider.getDelegate() === new ProxyTracerProvider().getDelegate()
  );
}

/** The SDK itself reads the variables for sampler, headers, certificates, timeouts, queue and resource. */
async function loadProvider() {
  const [sdk, resources, otlp] = await Promise.all([
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
  ]);
  return new sdk.BasicTracerProvider({
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ 'service.name': 'millrace' }))
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    spanProcessors: [new sdk.BatchSpanProcessor(new otlp.OTLPTraceExporter())],
  });
}

const ignore = (): void => undefined;

/** Logs what the SDK reports: failed exports, wrong variables, dropped spans. */
function logFaults(warn: Warn): void {
  const logger = {
    error: onceAMinute(warn),
    warn: onceAMinute(warn),
    info: ignore,
    debug: ignore,
    verbose: ignore,
  };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

function onceAMinute(warn: Warn): (text: string) => void {
  let quietUntil = 0;
  let leftOut = 0;
  return (text) => {
    // Exceptions are JSON with a stack.
    const error = /"message":"(.*?)"/.exec(text)?.[1] ?? text;
    if (performance.now() < quietUntil) leftOut += 1;
    else {
      quietUntil = performance.now() + WARN_EVERY_MS;
      warn({ error, leftOut }, 'the export of traces has a problem');
      leftOut = 0;
    }
  };
}

function isOff(env: NodeJS.ProcessEnv): boolean {
  const exporter = env['OTEL_TRACES_EXPORTER'] ?? 'otlp';
  return env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || !exporter.split(',').includes('otlp');
}

/** The first wrong variable, without its value, which can contain a token. */
function faultOf(env: NodeJS.ProcessEnv, endpoint: string): object | null {
  if (!/^https?:/.test(env[endpoint] ?? '') || !URL.canParse(env[endpoint] ?? ''))
    return { variable: endpoint, detail: 'is no http or https address' };
  const protocol = PROTOCOLS.find((name) => (env[name] ?? PROTOCOL) !== PROTOCOL);
  if (protocol === undefined) return null;
  return { variable: protocol, detail: `only ${PROTOCOL} is spoken, usually on port 4318` };
}
