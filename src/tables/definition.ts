/**
 * What a table is made of. Shaping, DDL, load statements and the reference are all derived from these.
 */
export type ColumnType = 'text' | 'integer' | 'decimal' | 'boolean' | 'date' | 'timestamp' | 'json';

/** Where a column's value comes from. */
export type Origin =
  /** A path into the document: member names joined with dots. */
  | string
  /** A column of the row that this row's document lies inside. */
  | { readonly parent: string }
  /** Position among its siblings, from 0. */
  | { readonly of: 'position' }
  /** How many rows of the same document came before it with the same values in the key; none for the first. */
  | { readonly of: 'repetition' }
  /** The name it has in the map it lies in. */
  | { readonly of: 'key' }
  /** What tells the row apart when its key does not. */
  | { readonly of: 'row' }
  /** What is said around the document, by the event that carries it. */
  | { readonly envelope: EnvelopeField };

/** What an event says of its document; `resource` is the part of the type that names it: `sleep` of `daily.data.sleep.created`. */
export type EnvelopeField =
  'event_id' | 'event_type' | 'resource' | 'received_at' | 'team_id' | 'user_id' | 'client_user_id';

/** Which events carry the documents of a table. */
export interface EventOrigin {
  /** Beginnings of their types. Of tables that ask for a type, those that name more of it have it. */
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
  /** Read when there is nothing at `from`: where older documents have it. */
  readonly older?: string;
  /** A row without it is rejected. */
  readonly required?: true;
  readonly description: string;
  readonly unit?: string;
  /** Share of the rows that had a value when it was learned, from 0 to 1. */
  readonly share?: number;
}

/** Documents inside a document that become rows of their own. */
export interface Nesting {
  /** Path of the array, or of the object whose members are the rows. */
  readonly at: string;
  readonly each: 'array' | 'map';
  readonly table: TableDefinition;
}

export interface TableDefinition {
  readonly name: string;
  readonly description: string;
  /** Columns whose values make a row one thing; the newest row of the same values wins. Empty: every row stands. */
  readonly key: readonly string[];
  /** Groups of the key's columns: a row without a value in each group has an unknown key. Default: each column is one. */
  readonly identity?: readonly (readonly string[])[];
  /** Column that tells which row is the newest. */
  readonly newest?: string;
  readonly columns: readonly Column[];
  readonly nested?: readonly Nesting[];
  /** The same for the tables nested in it. A table without is made of the service's answers only. */
  readonly events?: EventOrigin;
  /**
   * False for a document that is only a frame around the rows inside it: it is no table itself. The rows may inherit its
   * `extra`.
   */
  readonly ownRows?: false;
  /**
   * Member of an answer that can hold several documents by name. Each becomes a document of its own: what the answer says
   * beside them, the name in this member, and what stands under the name.
   */
  readonly unfold?: string;
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

/** Takes what a column did not; JSON object of the members, nested as in the document. */
export const EXTRA = json(
  'extra',
  'What has no column, as an object nested like the document: unknown fields, invalid values',
  { from: '' },
);

/** Set for all rows of a run by whoever runs it; nothing reads the clock. */
export const LOADED_AT = timestamp(
  '_loaded_at',
  'When the event was received, or when the run began that asked for the document',
  { from: '' },
);

/** Part of every key: rows whose key is unknown are never taken for one another. */
export const ROW_ID = text(
  '_row_id',
  'Only where a value of the key is missing or invalid: a hash of where the row stood in its event or file',
  { from: { of: 'row' } },
);

/** What every row made of an event says of the event. */
const ENVELOPE: readonly Column[] = [
  text('_event_id', 'delivery id of the event', { from: { envelope: 'event_id' } }),
  text('_event_type', 'type of the event, open list', { from: { envelope: 'event_type' } }),
  timestamp('_received_at', 'when the event came in', { from: { envelope: 'received_at' } }),
  text('team_id', 'team of the event, UUID', { from: { envelope: 'team_id' } }),
  text('user_id', 'user of the event, UUID', { from: { envelope: 'user_id' } }),
  text('client_user_id', "the team's id of the user", { from: { envelope: 'client_user_id' } }),
];

/** Every column of the table in order, the ones that all tables have included. */
export function columnsOf(definition: TableDefinition): readonly Column[] {
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

/** Groups of columns of which a known key has a value in each. A table without a key has one that nothing fills. */
export function identityOf({ key, identity }: TableDefinition): readonly (readonly string[])[] {
  return identity ?? (key.length === 0 ? [[]] : key.map((name) => [name]));
}

/** What of an event's record each says, which an archived record has under this name. */
const RECORD_NAMES: Readonly<Partial<Record<EnvelopeField, string>>> = { event_id: 'id' };

/** For each column of `columnsOf`, the index of the first that has the same value in every row made of an event: mostly its own. */
export function twinsOf(definition: TableDefinition): readonly number[] {
  const { events } = definition;
  const origins = columnsOf(definition).map(({ name, from }) => {
    const isSaid = typeof from === 'object' ? 'envelope' in from : name === LOADED_AT.name;
    if (events === undefined || !isSaid) return name;
    const field = typeof from === 'object' && 'envelope' in from ? from.envelope : 'received_at';
    return events.member === null ? (RECORD_NAMES[field] ?? field) : `envelope.${field}`;
  });
  return origins.map((origin) => origins.indexOf(origin));
}

/** What of the envelope a column has when the document says nothing; null for none. */
export function envelopeOf({ name, from }: Column, { events }: TableDefinition): EnvelopeField | null {
  if (events === undefined) return null;
  if (name === LOADED_AT.name) return 'received_at';
  if (typeof from === 'object') return 'envelope' in from ? from.envelope : null;
  if (events.member === null) return null;
  return name === 'team_id' || name === 'user_id' || name === 'client_user_id' ? name : null;
}
