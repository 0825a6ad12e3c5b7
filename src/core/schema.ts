/** What has been seen at one place of the events of a type. snake_case as in the archive. */
export interface SchemaField {
  /** JSON Pointer; `*` stands for each item of an array, and for each member whose name is data. */
  readonly path: string;
  /** text, integer, decimal, boolean, object, array, null: how often it was what. */
  readonly kinds: Readonly<Record<string, number>>;
  /** When it was that first, ISO 8601; null is left out. */
  readonly kinds_since: Readonly<Record<string, string>>;
  /** Share of the objects around it that had it, from 0 to 1; 1 for what has no name. */
  readonly share: number;
  /** ISO 8601. */
  readonly first_seen: string;
  readonly last_seen: string;
}

export interface SchemaType {
  /** `*` stands for a part that is data. */
  readonly type: string;
  readonly first_seen: string;
  readonly last_seen: string;
  /** Events, and how many of them were looked at. */
  readonly events: number;
  readonly looked_at: number;
  /** There were more fields than are remembered. */
  readonly full: boolean;
  readonly fields: readonly SchemaField[];
}

/** What accepted events look like. */
export interface SchemaReport {
  readonly version: 1;
  readonly enabled: boolean;
  /** There were more types than are remembered. */
  readonly full: boolean;
  readonly types: readonly SchemaType[];
}
