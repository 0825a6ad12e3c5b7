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
