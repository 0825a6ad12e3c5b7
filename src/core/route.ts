/** A sink, and a place inside it; `null` is the sink's default place. Written `sink` or `sink:destination`. */
export interface Target {
  readonly sink: string;
  readonly destination: string | null;
}

/** An ordered rule: event type prefixes (or `*`) → targets. The first rule that matches decides. */
export interface Route {
  readonly match: readonly string[];
  readonly to: readonly Target[];
}
