/** Headers of the request itself: nobody else sets them. */
export const FRAMING =
  /^(host|connection|content-(length|type|encoding)|transfer-encoding|expect|upgrade|keep-alive|te|trailer)$/;

/** What an event is known by at its target; it must not be said twice. */
export const OF_THE_EVENT =
  /^(idempotency-key|event-type|replay-id|claim-check|traceparent|tracestate|webhook-.*)$/;
