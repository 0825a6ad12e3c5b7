import { createTraceState } from '@opentelemetry/api';
import type { TraceContext } from '../core/trace.ts';
import { newSpanId, type Sampling } from './sampling.ts';
import type { SpanIds, SpanNote } from './span-note.ts';
import { type OpenSpan, partsOf, type Spans, type SpanStart } from './spans.ts';

/** Takes what spans say. */
export interface Notes {
  /** Nobody takes any more. */
  readonly hasEnded: boolean;
  add(note: SpanNote): void;
}

/** Spans that are no more than what they say; what an SDK makes of that is made elsewhere. */
export class NotedSpans implements Spans {
  readonly #notes: Notes;
  readonly #sampling: Sampling;

  constructor(notes: Notes, sampling: Sampling) {
    this.#notes = notes;
    this.#sampling = sampling;
  }

  start(name: string, start: SpanStart): OpenSpan {
    const { parent } = start;
    if (this.#notes.hasEnded) return UNKEPT;
    if (parent instanceof NotedSpan) {
      const { trace, id, state } = parent.origin;
      return new NotedSpan(this.#notes, name, start, {
        trace,
        state,
        parent: { id, flags: 1, isRemote: false },
      });
    }
    if (parent === null) {
      const trace = this.#sampling.begin();
      if (trace === null) return UNKEPT;
      return new NotedSpan(this.#notes, name, start, { trace, state: '', parent: null });
    }
    if (!('traceparent' in parent) || !this.#sampling.continues(parent)) return UNKEPT;
    const { trace, span: id, flags } = partsOf(parent);
    const state = parent.tracestate === undefined ? '' : createTraceState(parent.tracestate).serialize();
    return new NotedSpan(this.#notes, name, start, { trace, state, parent: { id, flags, isRemote: true } });
  }

  within<T>(_span: OpenSpan, call: () => Promise<T>): Promise<T> {
    return call();
  }
}

type Origin = Omit<SpanIds, 'id'> & Pick<SpanNote, 'parent'>;

class NotedSpan implements OpenSpan {
  readonly origin: Origin & SpanIds;
  readonly #notes: Notes;
  readonly #about: Pick<SpanNote, 'name' | 'kind' | 'link' | 'start'>;
  readonly #values: Record<string, string | number>;
  readonly #from = performance.now();
  #failure: string | null = null;

  constructor(notes: Notes, name: string, { kind, values, link }: SpanStart, origin: Origin) {
    const linked = link instanceof NotedSpan ? link.origin : null;
    this.#notes = notes;
    this.origin = { ...origin, id: newSpanId() };
    this.#about = { name, kind, link: linked, start: Date.now() };
    this.#values = { ...values };
  }

  get trace(): TraceContext {
    const { trace, id, state } = this.origin;
    const traceparent = `00-${trace}-${id}-01`;
    return state === '' ? { traceparent } : { traceparent, tracestate: state };
  }

  set(name: string, value: string | number): void {
    this.#values[name] = value;
  }

  fail(message = ''): void {
    this.#failure = message;
  }

  end(): void {
    this.#notes.add({
      ...this.#about,
      ...this.origin,
      duration: performance.now() - this.#from,
      failure: this.#failure,
      values: this.#values,
    });
  }
}

/** Of a trace that is not kept. */
const UNKEPT: OpenSpan = { trace: null, set: () => undefined, fail: () => undefined, end: () => undefined };
