import type { Redaction } from './route.ts';

/**
 * The fields at the top level of an event, as the sender wrote them; null for a key that is absent or null. Types are
 * dot-separated (`daily.data.meal.created`), and new ones can come at any time.
 */
export interface Envelope {
  readonly type: string;
  readonly team: string | null;
  readonly user: string | null;
  readonly clientUser: string | null;
}

/** One thing that happened: its envelope and the exact bytes that the sender signed. `body` is never changed. */
export interface Event extends Envelope {
  /** The delivery id, the same over all attempts; sinks pass it on as `idempotency-key`. */
  readonly id: string;
  /** Name of the source, such as `webhooks`. */
  readonly source: string;
  /** When it was read from the network, milliseconds since the epoch. */
  readonly receivedAt: number;
  /** Signature headers, by lower-case names, so that an archive can prove the event later. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Instructions kept with an event in the journal; the sender has not signed them. */
export interface Handling {
  /** Deliver to these targets only (`sink` or `sink:destination`), not by the routes. */
  readonly only?: readonly string[];
  /** Id of the replay that sends it; sinks pass it on as `replay-id`. */
  readonly replayId?: string;
  /** The body is a claim check; sinks pass that on as `claim-check` = `true`. Never set in the journal. */
  readonly claimCheck?: boolean;
  /** The body was redacted, and the signature headers are removed. Never set in the journal. */
  readonly redacted?: boolean;
  /** Redactions for targets in `only` that no route names. */
  readonly redactions?: readonly Redaction[];
  /** Redactions for one target in `only`, by its name there. */
  readonly without?: Readonly<Record<string, readonly Redaction[]>>;
  /** Its content was erased: an empty event that keeps its seq and goes nowhere. */
  readonly erased?: boolean;
  /** With `erased`: the event was never here, but quarantined. */
  readonly aside?: boolean;
  /** A person released it from quarantine: its age there does not count. */
  readonly released?: boolean;
  /** Sinks pass it on as `traceparent` and `tracestate`. */
  readonly trace?: TraceContext;
}

/**
 * The trace that the request named. The sender has not signed it: it follows an event through systems, and decides nothing.
 * https://www.w3.org/TR/trace-context/
 */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** An event in the journal. */
export interface JournalEvent extends Event {
  /** Sequence number: ascending, never used again. */
  readonly seq: number;
  readonly handling: Handling;
  /** Set by a log whose events all have `only`: identifies a person's retry; null for an event without one. */
  readonly again?: string | null;
}
