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

/** `hubs:labtest-events` → sink and destination, split at the first colon; `archive` alone is the sink's default place. */
export function parseTarget(text: string): Target {
  const colon = text.indexOf(':');
  if (colon === -1) return { sink: text, destination: null };
  return { sink: text.slice(0, colon), destination: text.slice(colon + 1) };
}

/** The way a target is written in the config. */
export function formatTarget(target: Target): string {
  return target.destination === null ? target.sink : `${target.sink}:${target.destination}`;
}
