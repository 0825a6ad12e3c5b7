import type { Redaction } from './route.ts';

/**
 * What an event says about itself at its top level. Every value is what the sender wrote; `null` means the key was
 * absent or null. Types are open, dot-separated strings (`daily.data.meal.created`): never match them exhaustively.
 */
export interface Envelope {
  readonly type: string;
  readonly team: string | null;
  readonly user: string | null;
  readonly clientUser: string | null;
}

/** One thing that happened: its envelope and the exact bytes the sender signed. Nothing downstream may alter `body`. */
export interface Event extends Envelope {
  /** The delivery id, the same over all attempts; sinks pass it on as `idempotency-key`. */
  readonly id: string;
  /** Name of the source it came in by, such as `webhooks`. */
  readonly source: string;
  /** Milliseconds since the Unix epoch when it was read off the wire. */
  readonly receivedAt: number;
  /** The signature headers it came with, lower-case names, so that an archive can prove it later. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Instructions that travel with an event inside the journal; never part of what the sender signed. */
export interface Handling {
  /** Deliver to these targets only (`sink` or `sink:destination`), whatever the routes say. */
  readonly only?: readonly string[];
  /** Marks a message as part of a replay; sinks pass it on as `replay-id`. */
  readonly replayId?: string;
  /** The body is a claim check, not the event: sinks say so with `claim-check` = `true`. Never set in the journal. */
  readonly claimCheck?: boolean;
  /** The body is not as it came, by a redaction of the route; the signature headers are not there. Never set in the journal. */
  readonly redacted?: boolean;
  /** What an event goes without to a target in `only` that no route names for it. */
  readonly redactions?: readonly Redaction[];
  /** The same of one target in `only`, by its name there. */
  readonly without?: Readonly<Record<string, readonly Redaction[]>>;
  /** Its content was erased: an empty event that keeps its place and goes nowhere. */
  readonly erased?: boolean;
  /** Of what looks erased: it was never here, but set aside in quarantine. */
  readonly aside?: boolean;
  /** A person let it out of quarantine: it is wanted however long it lay there. */
  readonly released?: boolean;
  /** The trace it belongs to; sinks pass it on as `traceparent` and `tracestate`. */
  readonly trace?: TraceContext;
}

/**
 * The trace an event belongs to, as its request said it. It is no part of what the sender signed: good for following
 * an event through systems, never for deciding anything. Metadata of a broker's message carries it on under the same
 * names. https://www.w3.org/TR/trace-context/
 */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** An event with its place in the journal. */
export interface JournalEvent extends Event {
  /** Position in the journal: ascending, never used again. */
  readonly seq: number;
  readonly handling: Handling;
  /** What says that it was put back, of a log whose events all say `only`; null when it was not. */
  readonly again?: string | null;
}
