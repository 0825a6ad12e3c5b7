/** What of a body is sent to a target; paths as in lib/json-paths.ts. */
export interface Redaction {
  /** Keeps only these, and the fields of the envelope. */
  readonly only?: readonly string[];
  /** Replaces the values of these by the mask. */
  readonly redact?: readonly string[];
  /** Removes these, with their names. */
  readonly remove?: readonly string[];
  /** Null or absent: a JSON null. */
  readonly mask?: string | null;
  /** Names of the envelope's fields in the body. */
  readonly fields: Readonly<Record<'type' | 'team' | 'user' | 'clientUser', string>>;
}

/** A sink and a destination inside it, null for its default. Written `sink` or `sink:destination`. */
export interface Target {
  readonly sink: string;
  readonly destination: string | null;
  /** Applied in order. */
  readonly redactions?: readonly Redaction[];
}

/**
 * A rule: event type prefixes, or `*`, → targets. The first route that matches decides. What users write is read in
 * `config/lists.ts`; this form is kept in the journal.
 */
export interface Route {
  readonly match: readonly string[];
  readonly to: readonly Target[];
}

/** Whether a prefix of a route, or of `envelope.require`, matches an event type. */
export function matches(prefix: string, type: string): boolean {
  return prefix === EVERYTHING || type.startsWith(prefix);
}

/** Whether a route matches every event type. */
export function matchesAll({ match }: Pick<Route, 'match'>): boolean {
  return match.includes(EVERYTHING);
}

const EVERYTHING = '*';

/** Splits `hubs:labtest-events` at the first colon; `archive` alone is the sink's default destination. */
export function parseTarget(text: string): Target {
  const colon = text.indexOf(':');
  if (colon === -1) return { sink: text, destination: null };
  return { sink: text.slice(0, colon), destination: text.slice(colon + 1) };
}

/** A text that says what is sent to a target; null when nothing is redacted. */
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
