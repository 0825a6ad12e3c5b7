import type { ConnectionCounts, ReceiptsStatus, SystemStatus } from '../../core/operations.ts';
import type { NotedHead } from '../../core/proof.ts';
import type { Route } from '../../core/route.ts';
import type { SchemaFigures } from '../schema/watch.ts';
import type { Distribution } from './distribution.ts';
import type { Meter } from './meter.ts';

/** All that the metrics are read from, at one moment. */
export interface MetricState {
  readonly meter: Meter;
  readonly status: SystemStatus;
  readonly ready: boolean;
  /** Deliveries that have begun and are not yet answered. */
  readonly receiving: number;
  /** Bodies waiting to be decompressed. */
  readonly decompressing: number;
  readonly connections: ConnectionCounts;
  readonly routes: readonly Route[];
  /** How many secrets are configured. */
  readonly secrets: number;
  readonly version: string;
  readonly acknowledge: string;
  /** Null where fields are not remembered. */
  readonly schema: SchemaFigures | null;
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
  /** One sample without labels, or one for each set of them. */
  readonly read: (state: MetricState) => Sample['value'] | Iterable<Sample>;
}

export type Unnamed = Omit<MetricDefinition, 'name'>;
type Read = MetricDefinition['read'];

/** @param rest its labels, if it has any, and what it reads */
export function define(type: MetricDefinition['type']) {
  return (help: string, ...rest: [Read] | [readonly string[], Read]): Unnamed => {
    const [labels, read] = rest.length === 1 ? [[], rest[0]] : rest;
    return { type, help, labels, read };
  };
}

/** Defines metrics that are there only where receipts are given. */
export function ofReceipts(type: MetricDefinition['type']) {
  return (help: string, valueOf: (receipts: ReceiptsStatus) => number): Unnamed => {
    const read: Read = ({ status }) => {
      const receipts = status.receiving?.receipts ?? null;
      return receipts === null ? [] : valueOf(receipts);
    };
    return { type, help, labels: [], read };
  };
}

/** Defines metrics with one sample for each of what belongs to a sink. */
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

export function* flat(counts: Iterable<[string, number]>, label: string): Generator<Sample> {
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

export function* distributions(bySink: ReadonlyMap<string, Distribution>): Generator<Sample> {
  for (const [sink, value] of bySink) yield { labels: { sink }, value };
}
