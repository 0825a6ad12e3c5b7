import type { RequestHeaders } from './verifier.ts';

/**
 * The trace an event belongs to, as its request said it. It is no part of what the sender signed: good for following
 * an event through systems, never for deciding anything. Metadata of a broker's message carries it on under the same
 * names. https://www.w3.org/TR/trace-context/
 */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** Version, trace id, parent id, flags; versions after 00 may add fields. Neither id may be all zeros. */
const PARENT =
  /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-[\x21-\x7e]{1,200})?$/;
/** The standard asks for at least 512 characters; what is longer may be left out. */
const STATE = /^[\x20-\x7e]{1,512}$/;

/** @returns null without a `traceparent`, or with one that is not well-formed: it is then as if there were none. */
export function traceOf(headers: RequestHeaders): TraceContext | null {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string' || !PARENT.test(traceparent)) return null;
  if (typeof tracestate !== 'string' || !STATE.test(tracestate)) return { traceparent };
  return { traceparent, tracestate };
}
