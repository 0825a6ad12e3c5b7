import { collectDefaultMetrics, Registry, type Metric } from '@prometheus-io/client';
import { METRICS } from './catalogue.ts';
import type { MetricDefinition, MetricState, Sample } from './definition.ts';
import type { Distribution } from './meter.ts';

/**
 * Writes our metrics with the Prometheus client, and its metrics of the process. Ours are read from plain counters when they are
 * asked for: the client's own counters would be too slow for each event.
 */
export function createExposition() {
  const registry = new Registry();
  let current: MetricState | null = null;
  for (const definition of METRICS) {
    const { name, help, type } = definition;
    const get = async () => {
      return { name, help, type, values: current === null ? [] : valuesOf(definition, current) };
    };
    // The registry uses only these members.
    registry.registerMetric({ name, help, type, get } as unknown as Metric);
  }
  for (const metric of metricsOfProcess()) registry.registerMetric(metric);
  return {
    contentType: registry.contentType,

    render: (state: MetricState): Promise<string> => {
      current = state;
      return registry.metrics();
    },
  };
}

let ofProcess: readonly Metric[] | null = null;

/** Started once in a process: the client's timers never end. */
function metricsOfProcess(): readonly Metric[] {
  if (ofProcess === null) {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    ofProcess = registry.getMetricsAsArray() as unknown as Metric[];
  }
  return ofProcess;
}

/** Samples for the client's registry. */
function valuesOf({ name, read }: MetricDefinition, state: MetricState) {
  const found = read(state);
  const samples =
    typeof found === 'object' && Symbol.iterator in found ? found : [{ labels: {}, value: found }];
  return Array.from(samples).flatMap(({ labels, value }: Sample) =>
    typeof value === 'number' ? [{ labels, value }] : bucketsOf(name, labels, value),
  );
}

/** Buckets count everything up to their bound. */
function bucketsOf(name: string, labels: Sample['labels'], distribution: Distribution) {
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
