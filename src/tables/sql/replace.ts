import { columnsOf, LOADED_AT, type Column, type TableDefinition } from '../definition.ts';
import { type Dialect, firstRows, listColumns, rankOver } from './dialects/dialect.ts';
import { arrivalOf, eventColumnsOf, keyOf, rowKeyOf, versionOf } from './identity.ts';

type Words = Pick<Dialect, 'quote' | 'types' | 'lacksUsing' | 'startOf' | 'rowId' | 'hashed'>;

/** Staged rows that replace those of a table. */
export interface Replacement {
  readonly table: TableDefinition;
  /** The table whose documents it is made of: itself, or the one it is nested in. */
  readonly document: TableDefinition;
  /** Table of the staged rows, with the same columns; quoted. */
  readonly staged: string;
  /** A query of the same rows in parentheses, where some staged columns have another type. */
  readonly typed?: string;
  /** The staged rows are all rows of this day (UTC): the table's other rows of it are removed. */
  readonly day?: string | null;
}

/**
 * Replaces rows of the same events, and of the same versions of the same answers, by staged rows. Repeating it changes nothing, so a
 * load that was interrupted is repeated.
 * @returns statements without `;`, for one transaction where the warehouse has transactions
 */
export function replaceRows(replacement: Replacement, words: Words): string[] {
  const { table, day = null, staged } = replacement;
  const ranked = rankOf(replacement, words);
  const { rowId } = words;
  // Where staged rows have an id, only their keys are sorted, and not whole rows.
  const repeated =
    rowId === undefined || ranked === null
      ? []
      : [
          `DELETE FROM ${staged}\nWHERE ${rowId} IN (\n  SELECT id_ FROM (\n    SELECT ${rowId} AS id_, ${ranked}\n    FROM ${staged}\n  ) AS ranked_\n  WHERE rank_ > 1\n)`,
        ];
  const rows =
    rowId === undefined
      ? distinctRows(replacement, words)
      : `SELECT\n${listColumns(table, words.quote)}\nFROM ${staged}`;
  return [
    ...repeated,
    ...(day === null ? [] : [deleteDay(table, day, words)]),
    ...deleteSame(replacement, words),
    `INSERT INTO ${words.quote(table.name)} (\n${listColumns(table, words.quote)}\n)\n${rows}`,
  ];
}

/** Statement that removes the rows that came in on a day. */
export function deleteDay(table: TableDefinition, day: string, words: Words): string {
  const { quote } = words;
  return `DELETE FROM ${quote(table.name)}\nWHERE ${isOfDay(table, day, words)}`;
}

export function isOfDay(table: TableDefinition, day: string, { quote, types, startOf }: Words): string {
  const start = startOf ?? ((one) => `CAST('${one}T00:00:00+00:00' AS ${types.timestamp})`);
  const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
  const at = quote(arrivalOf(table));
  return `${at} >= ${start(day)} AND ${at} < ${start(next)}`;
}

/** Query of the staged rows, each once: an archive may hold an event twice. */
export function distinctRows(replacement: Replacement, words: Words): string {
  const { table, staged, typed = staged } = replacement;
  const rows = listColumns(table, words.quote);
  const ranked = rankOf(replacement, words);
  if (ranked === null) return `SELECT\n${rows}\nFROM ${typed}`;
  return firstRows(`SELECT\n${rows}`, ranked, [`FROM ${typed} AS rows_`]);
}

/** A column `rank_` that is 1 in one of several rows with the same key; null for a table without a key. */
function rankOf({ table, document }: Replacement, { quote }: Words): string | null {
  const event = eventColumnsOf(table);
  const key = rowKeyOf(table);
  if (key.length === 0) return null;
  const version = versionOf(table, document);
  const answered = [LOADED_AT.name, ...(version === null ? [] : [version])];
  const same = [
    ...new Set([...(event === null ? [] : [event.id, event.type, event.user]), ...key].map(quote)),
    ...(event === null
      ? answered.map(quote)
      : answered.map((name) => `CASE WHEN ${quote(event.id)} IS NULL THEN ${quote(name)} END`)),
  ];
  return rankOver(same, [quote(event === null ? LOADED_AT.name : event.received)]);
}

/** Statements that remove the rows that are also staged. */
function deleteSame({ table, document, staged }: Replacement, words: Words): string[] {
  const { quote, lacksUsing, hashed } = words;
  const own = (name: string): string => `${quote(table.name)}.${quote(name)}`;
  const other = (name: string): string => `new_.${quote(name)}`;
  const remove = (conditions: readonly string[]): string => {
    const where = conditions.join('\n  AND ');
    return lacksUsing === true
      ? `DELETE FROM ${quote(table.name)}\nWHERE EXISTS (\n  SELECT 1 FROM ${staged} AS new_\n  WHERE ${where}\n)`
      : `DELETE FROM ${quote(table.name)}\nUSING ${staged} AS new_\nWHERE ${where}`;
  };
  const event = eventColumnsOf(table);
  const statements: string[] = [];
  if (event !== null) {
    const columns = columnsOf(table).filter(({ name }) => name === event.type || name === event.user);
    const alike = columns.map((column) => equal(column, own, other, words));
    const ids = [own(event.id), other(event.id)];
    const hashes = hashed === undefined ? [] : [ids.map(hashed).join(' = ')];
    statements.push(remove([...hashes, ids.join(' = '), ...alike]));
  }
  // Rows of answers have no event: they are the same if their document, its version and the time of the run are.
  if (table.name === 'events') return statements;
  const version = versionOf(table, document);
  const known = new Set([...keyOf(table), ...(version === null ? [] : [version]), LOADED_AT.name]);
  const columns = columnsOf(table).filter(({ name, type }) =>
    // Rows without a key are the same if all their values are.
    table.key.length === 0 ? type !== 'json' : known.has(name),
  );
  const none = event === null ? [] : [`${own(event.id)} IS NULL`, `${other(event.id)} IS NULL`];
  statements.push(remove([...columns.map((column) => equal(column, own, other, words)), ...none]));
  return statements;
}

/** Equal, or both null; written as an equation, because warehouses join by a hash then. */
export function equal(column: Column, own: Name, other: Name, words: Pick<Words, 'types'>): string {
  const text = (value: string): string => (column.required === true ? value : asText(column, value, words));
  return `${text(own(column.name))} = ${text(other(column.name))}`;
}

/** A value as a text, in which null is not the empty one. */
export function asText(
  { type }: Column,
  value: string,
  { types, nullable }: Pick<Dialect, 'types' | 'nullable'>,
): string {
  const as = nullable?.(types.text) ?? types.text;
  return `COALESCE(${type === 'text' ? `${value} || '.'` : `CAST(${value} AS ${as})`}, '')`;
}

type Name = (column: string) => string;
