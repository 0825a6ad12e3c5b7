import type { Config } from '../../config/config.ts';
import type { ConnectionCounts, ReceiptsStatus, SystemStatus } from '../../core/operations.ts';
import type { NotedHead } from '../../core/proof.ts';
import type { SchemaWatch } from '../schema/watch.ts';
import type { Distribution, Meter } from './meter.ts';

/** The state that metrics are read from. */
export interface MetricState {
  readonly meter: Meter;
  readonly status: SystemStatus;
  readonly ready: boolean;
  readonly receiver: {
    /** Unanswered deliveries. */
    readonly inFlight: number;
    /** Bodies that wait for decompression. */
    readonly decompressing: number;
    readonly connections: ConnectionCounts;
  };
  readonly config: Pick<Config, 'acknowledge' | 'routes' | 'signing'>;
  readonly version: string;
  /** Null without a schema memory. */
  readonly schema: SchemaWatch['figures'] | null;
  /** Heads of the manifests of files sinks. */
  readonly archives: readonly (NotedHead & { readonly sink: string })[];
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number | Distribution;
}

export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** One value without labels, or a sample for each set of labels. */
  readonly read: (state: MetricState) => Sample['value'] | Iterable<Sample>;
}

export type Unnamed = Omit<MetricDefinition, 'name'>;
type Read = MetricDefinition['read'];

/** @param rest the labels, if any, and the reader */
export function define(type: MetricDefinition['type']) {
  return (help: string, ...rest: [Read] | [readonly string[], Read]): Unnamed => {
    const [labels, read] = rest.length === 1 ? [[], rest[0]] : rest;
    return { type, help, labels, read };
  };
}

/** Defines a metric that exists only with receipts. */
export function receiptsGauge(help: string, valueOf: (receipts: ReceiptsStatus) => number): Unnamed {
  const read: Read = ({ status }) => {
    const receipts = status.receiving?.receipts ?? null;
    return receipts === null ? [] : valueOf(receipts);
  };
  return { type: 'gauge', help, labels: [], read };
}

/** Defines metrics with one sample a sink. */
export function ofSinks<T extends { readonly sink: string }>(
  type: MetricDefinition['type'],
  list: (state: MetricState) => readonly T[],
) {
  return (help: string, valueOf: (each: T) => number): Unnamed => {
    const read: Read = (state) =>
      list(state).map((each) => ({ labels: { sink: each.sink }, value: valueOf(each) }));
    return { type, help, labels: ['sink'], read };
  };
}

export function* flat(
  counts: Iterable<readonly [string, Sample['value']]>,
  label: string,
): Generator<Sample> {
  for (const [name, value] of counts) yield { labels: { [label]: name }, value };
}

export function* nested(
  counts: ReadonlyMap<string, Iterable<[string, number]>>,
  outer: string,
  inner: string,
): Generator<Sample> {
  for (const [key, tally] of counts)
    for (const [name, value] of tally) yield { labels: { [outer]: key, [inner]: name }, value };
}
