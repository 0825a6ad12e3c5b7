import type { SpanStart, SpanValues } from './spans.ts';

export interface SpanIds {
  /** 32 hex digits. */
  readonly trace: string;
  /** 16 hex digits. */
  readonly id: string;
  /** The `tracestate` of the trace, empty where there is none. */
  readonly state: string;
}

/** What a span says, as it crosses to the thread that exports it: texts and numbers, a hundredth of what an SDK makes of them. */
export interface SpanNote extends SpanIds {
  readonly name: string;
  readonly kind: SpanStart['kind'];
  /** The span it is part of; null for the first of a trace. */
  readonly parent: { readonly id: string; readonly flags: number; readonly isRemote: boolean } | null;
  /** Milliseconds since 1970. */
  readonly start: number;
  /** Milliseconds. */
  readonly duration: number;
  /** What it failed with, which can be empty; null when it did not. */
  readonly failure: string | null;
  /** The span that says more. */
  readonly link: SpanIds | null;
  readonly values: SpanValues;
}

/** What the thread is told. */
export type Order = readonly SpanNote[] | 'stop';

/** What it says. */
export type Report =
  /** So many spans were exported, or could not be: they take no room any more. */
  | { readonly settled: number }
  | { readonly warning: string; readonly detail: object }
  /** It cannot load what it exports with. */
  | { readonly unable: string }
  | 'stopped';
