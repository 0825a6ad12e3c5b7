import type { Tracing } from '../core/tracing.ts';
import { installCommand } from '../lib/installed.ts';
import { Exporter, type Warn } from './exporter.ts';
import { NotedSpans } from './noted-spans.ts';
import { registeredSpans } from './registered-spans.ts';
import { SAMPLERS, samplingBy } from './sampling.ts';
import { tracingWith } from './tracing.ts';

/** What records spans, and what stops that. */
export interface Traces {
  /** Null when nothing collects spans: they then cost nothing, not even the asking. */
  readonly tracing: Tracing | null;
  /** Sends what is left, for a moment. */
  stop(): Promise<void>;
}

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];
const PROTOCOL = 'http/protobuf';
/** That of the standard, as is the room of a queue: spans that wait. */
const SAMPLER = 'parentbased_always_on';
const ROOM = 2048;
const PACKAGES = [
  '@opentelemetry/sdk-trace-base@^2.12.1',
  '@opentelemetry/resources@^2.12.1',
  '@opentelemetry/exporter-trace-otlp-proto@^0.223.1',
];
const NONE: Traces = { tracing: null, stop: () => Promise.resolve() };

/**
 * Spans for the SDK that the process was started with or else, where the environment names a collector, for that one by
 * OTLP. Whatever stands in the way of traces is a warning: a receiver without them is better than none.
 * @param env that of the process, which the SDK reads by itself
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function openTraces(warn: Warn, env = process.env): Traces {
  const registered = registeredSpans();
  if (registered !== null) return { ...NONE, tracing: tracingWith(registered) };
  const endpoint = ENDPOINTS.find((name) => (env[name] ?? '').trim() !== '');
  if (endpoint === undefined || isOff(env)) return NONE;
  const fault = faultOf(env, endpoint);
  if (fault !== null) {
    warn(fault, 'no traces are exported');
    return NONE;
  }
  const onUnable = (error: string): void =>
    warn(
      { error, install: installCommand(...PACKAGES) },
      `no traces are exported: ${endpoint} needs packages that are not installed beside millrace`,
    );
  const exporter = new Exporter({ env, room: roomOf(env), warn, onUnable });
  const share = env['OTEL_TRACES_SAMPLER_ARG'] ?? '';
  const sampling = samplingBy(env['OTEL_TRACES_SAMPLER'] || SAMPLER, share === '' ? 1 : Number(share));
  return { tracing: tracingWith(new NotedSpans(exporter, sampling)), stop: () => exporter.stop() };
}

function roomOf(env: NodeJS.ProcessEnv): number {
  const room = Number(env['OTEL_BSP_MAX_QUEUE_SIZE'] ?? '');
  return room > 0 ? room : ROOM;
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
