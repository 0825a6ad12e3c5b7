/** What of an event's body does not leave; paths as in lib/json-paths.ts. */
export interface Redaction {
  /** Only what these name is left, beside the fields of the envelope. */
  readonly only?: readonly string[];
  /** What these name becomes the mask. */
  readonly redact?: readonly string[];
  /** What these name goes with its name. */
  readonly remove?: readonly string[];
  /** Text in the place of what is redacted; null, or none, for a JSON null. */
  readonly mask?: string | null;
  /** Names of the envelope's fields in the body. */
  readonly fields: Readonly<Record<'type' | 'team' | 'user' | 'clientUser', string>>;
}

/** A sink, and a place inside it; `null` is the sink's default place. Written `sink` or `sink:destination`. */
export interface Target {
  readonly sink: string;
  readonly destination: string | null;
  /** What of an event does not leave for there; one after another. Absent: all of it does. */
  readonly redactions?: readonly Redaction[];
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

/** What of an event leaves for a target, in words; null when all of it does. */
export function leavingText({ redactions = [] }: Target): string | null {
  const parts = redactions.flatMap(({ only, redact, remove, mask = null, fields }) => [
    ...(only === undefined
      ? []
      : [`only ${[...Object.values(fields).map((name) => `/${name}`), ...only].join(', ')}`]),
    ...(redact === undefined ? [] : [`${redact.join(', ')} as ${JSON.stringify(mask)}`]),
    ...(remove === undefined ? [] : [`without ${remove.join(', ')}`]),
  ]);
  return parts.length === 0 ? null : parts.join('; ');
}

/** The way a target is written in the config. */
export function formatTarget(target: Target): string {
  return target.destination === null ? target.sink : `${target.sink}:${target.destination}`;
}
