import { collectDefaultMetrics, Registry, type Metric } from '@prometheus-io/client';
import { METRICS } from './catalogue.ts';
import type { MetricDefinition, MetricState, Sample } from './definition.ts';
import type { Distribution } from './distribution.ts';

/** One line to be, as the client's registry takes it. */
interface Value {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * Writes the metrics with the Prometheus client, and adds its own of the process: CPU, memory, garbage collection,
 * lag of the event loop. Ours are read from plain counters at this moment and not kept in the client's stores, whose
 * look-up by labels would cost more than the hot path can spare.
 */
export function createExposition() {
  const registry = new Registry();
  let current: MetricState | null = null;
  for (const definition of METRICS) {
    const { name, help, type } = definition;
    const get = async () => {
      return { name, help, type, values: current === null ? [] : valuesOf(definition, current) };
    };
    // The registry asks a metric for no more than this.
    registry.registerMetric({ name, help, type, get } as unknown as Metric);
  }
  for (const metric of metricsOfProcess()) registry.registerMetric(metric);
  return {
    contentType: registry.contentType,
    /** The metrics of `state` and those of the process, as Prometheus reads them. */
    render: (state: MetricState): Promise<string> => {
      current = state;
      return registry.metrics();
    },
  };
}

let ofProcess: readonly Metric[] | null = null;

/** A process is measured once, however many receivers it has had: what the client starts for it never ends. */
function metricsOfProcess(): readonly Metric[] {
  if (ofProcess === null) {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    ofProcess = registry.getMetricsAsArray() as unknown as Metric[];
  }
  return ofProcess;
}

function valuesOf({ name, read }: MetricDefinition, state: MetricState): Value[] {
  const found = read(state);
  const samples =
    typeof found === 'object' && Symbol.iterator in found ? found : [{ labels: {}, value: found }];
  return Array.from(samples).flatMap(({ labels, value }: Sample) =>
    typeof value === 'number' ? [{ labels, value }] : bucketsOf(name, labels, value),
  );
}

/** Buckets count everything up to their bound. */
function bucketsOf(name: string, labels: Sample['labels'], distribution: Distribution): Value[] {
  const { bounds, counts, count, sum } = distribution;
  let upTo = 0;
  const buckets = bounds.map((bound, at) => {
    upTo += counts[at] ?? 0;
    return { metricName: `${name}_bucket`, labels: { ...labels, le: String(bound) }, value: upTo };
  });
  return [
    ...buckets,
    { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: count },
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
