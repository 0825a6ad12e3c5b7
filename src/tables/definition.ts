export type ColumnType = 'text' | 'integer' | 'decimal' | 'boolean' | 'date' | 'timestamp' | 'json';

/** Where a column's value comes from. */
export type Origin =
  /** A path into the document: member names joined with dots. */
  | string
  /** A column of the row that this row's document lies inside. */
  | { readonly parent: string }
  /** Position among the rows of its document, from 0. */
  | { readonly of: 'position' }
  /** Number of rows before it in the same document with the same values in the key; null for 0. */
  | { readonly of: 'repetition' }
  /** Its name in the map that it is a member of. */
  | { readonly of: 'key' }
  /** An id for a row with an unknown key. */
  | { readonly of: 'row' }
  /** What the event that carries the document says. */
  | { readonly envelope: EnvelopeField };

/** What an event says of its document. `resource` is the part of its type that names it: `sleep` of `daily.data.sleep.created`. */
export type EnvelopeField =
  'event_id' | 'event_type' | 'resource' | 'received_at' | 'team_id' | 'user_id' | 'client_user_id';

/** Which events carry the documents of a table. */
export interface EventOrigin {
  /**
   * Beginnings of their types. The longest beginning that matches decides: `timeseries` takes every `daily.data.` type that no
   * other table names.
   */
  readonly types: readonly string[];
  /** Member of the body that is the document; null when the whole archived record is. */
  readonly member: 'data' | null;
  /** The member is an array, and each item is a document. */
  readonly each?: 'array';
}

export interface Column {
  /** snake_case; a unit is part of the name. */
  readonly name: string;
  readonly type: ColumnType;
  readonly from: Origin;
  /** Path of the value in older documents, read when there is none at `from`. */
  readonly older?: string;
  /** A row without it is rejected. */
  readonly required?: true;
  readonly description: string;
  readonly unit?: string;
  /** Of a learned column: share of the rows that had a value then, from 0 to 1. */
  readonly share?: number;
}

/** Objects inside a document that become rows of another table. */
export interface Nesting {
  /** Path of the array, or of the object whose members are the rows. */
  readonly at: string;
  readonly each: 'array' | 'map';
  readonly table: TableDefinition;
}

/** Shaping, DDL, load statements and the reference of tables are all derived from this. */
export interface TableDefinition {
  readonly name: string;
  readonly description: string;
  /** Columns that identify a row: of rows with the same values the newest wins. Without a key, every row stays. */
  readonly key: readonly string[];
  /** Groups of the key's columns: a row without a value in each group has an unknown key. Default: each column is one. */
  readonly identity?: readonly (readonly string[])[];
  /** Column by which a row is newer than others. */
  readonly newest?: string;
  readonly columns: readonly Column[];
  /** Names of the columns that rows have, where not all are wanted. */
  readonly only?: readonly string[];
  readonly nested?: readonly Nesting[];
  /** The same for the tables nested in it. A table without events is made of the service's answers only. */
  readonly events?: EventOrigin;
  /** False for a document that is only a frame around the rows inside it. They may inherit its `extra`. */
  readonly ownRows?: false;
  /**
   * Member of an answer that can hold several documents by name. Each is shaped alone, with the members beside them, and with its
   * name in this member.
   */
  readonly unfold?: string;
  /** Member of an answer about one document that has it, beside what became of the request. */
  readonly framed?: string;
}

/** Makes columns of a type, each read from the member of its name unless `from` says otherwise. */
function columnOf(type: ColumnType) {
  return (name: string, description: string, more: Partial<Column> = {}): Column => {
    return { name, type, from: name, description, ...more };
  };
}

export const text = columnOf('text');
export const integer = columnOf('integer');
export const decimal = columnOf('decimal');
export const boolean = columnOf('boolean');
export const date = columnOf('date');
export const timestamp = columnOf('timestamp');
export const json = columnOf('json');

/** Has what no other column takes: an object of the members, nested as in the document. */
export const EXTRA = json(
  'extra',
  'What has no column, as an object nested like the document: unknown fields, invalid values',
  { from: '' },
);

/** Given by the caller for all rows of a run. */
export const LOADED_AT = timestamp(
  '_loaded_at',
  'When the event was received, or when the run began that asked for the document',
  { from: '' },
);

/** Part of the key where it can be unknown, so that rows with an unknown key are never merged. */
export const ROW_ID = text(
  '_row_id',
  'Only where a value of the key is missing or invalid: a hash of where the row stood in its event or file',
  { from: { of: 'row' } },
);

/** Columns that every row made of an event has. */
const ENVELOPE: readonly Column[] = [
  text('_event_id', 'delivery id of the event', { from: { envelope: 'event_id' } }),
  text('_event_type', 'type of the event, open list', { from: { envelope: 'event_type' } }),
  timestamp('_received_at', 'when the event came in', { from: { envelope: 'received_at' } }),
  text('team_id', 'team of the event, UUID', { from: { envelope: 'team_id' } }),
  text('user_id', 'user of the event, UUID', { from: { envelope: 'user_id' } }),
  text('client_user_id', "the team's id of the user", { from: { envelope: 'client_user_id' } }),
];

/** The ids that an event has beside its document; texts in every table. */
export const EVENT_IDS: ReadonlySet<string> = new Set(['team_id', 'user_id', 'client_user_id']);

/** The columns of the table's rows in order, with those that all tables have. */
export function columnsOf(definition: TableDefinition): readonly Column[] {
  const { only } = definition;
  const all = allColumnsOf(definition);
  return only === undefined ? all : all.filter(({ name }) => only.includes(name));
}

/** The same, with those that are not wanted: a document has them, and they must not look unknown. */
export function allColumnsOf(definition: TableDefinition): readonly Column[] {
  const { columns, events } = definition;
  const own = new Set(columns.map(({ name }) => name));
  const envelope = events === undefined ? [] : ENVELOPE.filter(({ name }) => !own.has(name));
  return [...columns, EXTRA, ...envelope, LOADED_AT, ...(hasRowId(definition) ? [ROW_ID] : [])];
}

/** True when a row of the table can have an unknown key. */
export function hasRowId(definition: TableDefinition): boolean {
  const { columns, ownRows } = definition;
  const sure = columns.filter(
    ({ required, from }) => required === true || (typeof from === 'object' && 'of' in from),
  );
  return (
    ownRows !== false &&
    !identityOf(definition).every((group) => sure.some(({ name }) => group.includes(name)))
  );
}

/** Groups of columns; a known key has a value in each. A table without a key has one empty group. */
export function identityOf({ key, identity }: TableDefinition): readonly (readonly string[])[] {
  return identity ?? (key.length === 0 ? [[]] : key.map((name) => [name]));
}

/** For each of these columns, the index of the first with the same value in every row made of an event. */
export function twinsOf(definition: TableDefinition, columns = columnsOf(definition)): readonly number[] {
  const { events } = definition;
  const origins = columns.map(({ name, from }) => {
    const isEnvelope = typeof from === 'object' && 'envelope' in from;
    if (events === undefined || !(isEnvelope || name === LOADED_AT.name)) return name;
    const field = isEnvelope ? from.envelope : 'received_at';
    if (events.member !== null) return `envelope.${field}`;
    return field === 'event_id' ? 'id' : field;
  });
  return origins.map((origin) => origins.indexOf(origin));
}

/** The field of the envelope that fills a column when the document has no value; null for none. */
export function envelopeOf({ name, from }: Column, { events }: TableDefinition): EnvelopeField | null {
  if (events === undefined) return null;
  if (name === LOADED_AT.name) return 'received_at';
  if (typeof from === 'object') return 'envelope' in from ? from.envelope : null;
  return events.member !== null && EVENT_IDS.has(name) ? (name as EnvelopeField) : null;
}
