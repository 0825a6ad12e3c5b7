/** One field in the events of a type. Keys as in the archive. */
export interface SchemaField {
  /** JSON Pointer; `*` is any item of an array, and any member whose name is data. */
  readonly path: string;
  /** How often it was text, integer, decimal, boolean, object, array, null. */
  readonly kinds: Readonly<Record<string, number>>;
  /** When each kind except null was first seen, ISO 8601. */
  readonly kinds_since: Readonly<Record<string, string>>;
  /** Share of the objects around it that had it, from 0 to 1; 1 for an item of an array. */
  readonly share: number;
  /** ISO 8601. */
  readonly first_seen: string;
  readonly last_seen: string;
}

export interface SchemaType {
  /** With `*` for a part that is data. */
  readonly type: string;
  readonly first_seen: string;
  readonly last_seen: string;
  /** Events counted, and events whose fields were read. */
  readonly events: number;
  readonly looked_at: number;
  /** There were more fields than are remembered. */
  readonly full: boolean;
  readonly fields: readonly SchemaField[];
}

export interface SchemaReport {
  readonly version: 1;
  readonly enabled: boolean;
  /** There were more types than are remembered. */
  readonly full: boolean;
  readonly types: readonly SchemaType[];
}
