import { hash } from 'node:crypto';
import {
  type Column,
  columnsOf,
  date,
  hasRowId,
  LOADED_AT,
  ROW_ID,
  type TableDefinition,
  text,
  timestamp,
} from '../definition.ts';
import type { TableEntry } from '../tables.ts';
import { type Dialect, script, tableName } from './dialects/dialect.ts';
import { parentColumn, spanOf } from './identity.ts';
import { asText } from './replace.ts';

/** What the service was asked for, in a warehouse: a row for each whole pull of a backfill. */
export const WHOLE_PULLS: TableDefinition = {
  name: '_millrace_whole_pulls',
  description: 'Whole pulls of backfills: what is in their range and not in them has vanished at the service',
  key: [],
  columns: [
    text('pull', 'hash of what is known of it', { required: true }),
    text('user_id', 'user, UUID', { required: true }),
    text('resource', 'what was asked for', { required: true }),
    text('of_table', 'table of its rows', { required: true }),
    text('provider', 'provider; null for all'),
    date('since_day', 'first day'),
    date('until_day', 'last day'),
    timestamp('since_at', 'begin of the range'),
    timestamp('until_at', 'end of the range, not included'),
    timestamp('began_at', 'when it began', { required: true }),
  ],
};

/** A whole answer of the service: what a user had in a range of time when the pull began. */
export interface Pull {
  readonly user_id: string;
  readonly resource: string;
  readonly table: string;
  /** Null for all providers. */
  readonly provider: string | null;
  /** Begin of the range, ISO 8601, and its end, which is not included; null for a resource without a range. */
  readonly since: string | null;
  readonly until: string | null;
  readonly began_at: string;
}

/**
 * The range in which an item that the pull lacks is gone. Where the service may cut it by another day of the item than its row shows,
 * or by the day in another zone, that is the range without its first and last day.
 */
export function certainRange(pull: Pull, table: TableDefinition): Pull {
  const { since, until } = pull;
  if (since === null || until === null || spanOf(table)?.isExact !== false) return pull;
  const [from, to] = [Date.parse(since) + DAY_MS, Date.parse(until) - DAY_MS];
  return { ...pull, since: new Date(from).toISOString(), until: new Date(to).toISOString() };
}

function nameOf(pull: Pull): string {
  return hash('sha256', JSON.stringify(pull)).slice(0, 32);
}

/** Pulls in one INSERT. */
const PULLS_AT_ONCE = 500;
const DAY_MS = 86_400_000;

/** Statements that note pulls; repeating them changes nothing. */
export function notePulls(pulls: readonly Pull[], dialect: Dialect): string {
  const { quote, types } = dialect;
  const names = WHOLE_PULLS.columns.map(({ name }) => quote(name)).join(', ');
  const table = tableName(dialect, WHOLE_PULLS.name);
  const at = (ms: number | null): string => {
    if (ms === null) return 'NULL';
    const [day = '', time = ''] = new Date(ms).toISOString().slice(0, -1).split('T');
    return dialect.startOf?.(day, time) ?? `CAST('${day}T${time}+00:00' AS ${types.timestamp})`;
  };
  const on = (ms: number | null): string =>
    ms === null ? 'NULL' : `CAST('${new Date(ms).toISOString().slice(0, 10)}' AS ${types.date})`;
  const rowOf = (pull: Pull): string => {
    const [since, until] = [pull.since, pull.until].map((time) => (time === null ? null : Date.parse(time)));
    const values = [nameOf(pull), pull.user_id, pull.resource, pull.table].map((one) => dialect.literal(one));
    const days = [since && Math.ceil(since / DAY_MS) * DAY_MS, until && until - 1].map((ms) =>
      on(ms ?? null),
    );
    const times = [since ?? null, until ?? null, Date.parse(pull.began_at)].map(at);
    const provider = pull.provider === null ? 'NULL' : dialect.literal(pull.provider);
    return `(${[...values, provider, ...days, ...times].join(', ')})`;
  };
  const parts = Array.from({ length: Math.ceil(pulls.length / PULLS_AT_ONCE) }, (_, n) =>
    pulls.slice(n * PULLS_AT_ONCE, (n + 1) * PULLS_AT_ONCE),
  );
  return script(
    parts.flatMap((part) => [
      `DELETE FROM ${table}\nWHERE ${quote('pull')} IN (${part.map((pull) => dialect.literal(nameOf(pull))).join(', ')})`,
      `INSERT INTO ${table} (${names}) VALUES\n${part.map(rowOf).join(',\n')}`,
    ]),
  );
}

/**
 * Statements that remove rows that have vanished at the service, with the rows nested in them: a whole pull of their user, range and
 * provider began after they came, and does not have them; rows of earlier pulls go too. Null for a table that no pull is of.
 */
export function removeVanished({ definition, document }: TableEntry, dialect: Dialect): string | null {
  const columns = new Map(columnsOf(definition).map((column) => [column.name, column]));
  const isOfPulls = document === definition || document.ownRows === false;
  const needed = ['_event_id', 'user_id', ...definition.key];
  if (!isOfPulls || definition.key.length === 0 || !needed.every((name) => columns.has(name))) return null;
  const identity = [...new Set(['user_id', ...definition.key, '_event_id', LOADED_AT.name])];
  const gone = vanishedFrom(definition, columns, identity, dialect);
  const remove = (table: TableDefinition, names: readonly string[]): string => {
    const own = new Map(columnsOf(table).map((column) => [column.name, column]));
    const row = names.map((name) => asText(own.get(name) as Column, dialect.quote(name), dialect));
    const users = `SELECT ${dialect.quote('user_id')} FROM ${tableName(dialect, WHOLE_PULLS.name)}`;
    return [
      `DELETE FROM ${tableName(dialect, table.name)}`,
      `WHERE ${dialect.quote('user_id')} IN (${users})`,
      `  AND (${row.join(', ')}) IN (\n${gone}\n)`,
    ].join('\n');
  };
  const nested = (document === definition ? (definition.nested ?? []) : []).flatMap(({ table }) => {
    const names = identity.map((name) => (definition.key.includes(name) ? parentColumn(table, name) : name));
    return names.includes(null) ? [] : [remove(table, names as string[])];
  });
  return script([...nested, remove(definition, identity)]);
}

/** Query of the identities of the vanished rows, as texts. */
function vanishedFrom(
  definition: TableDefinition,
  columns: ReadonlyMap<string, Column>,
  identity: readonly string[],
  dialect: Dialect,
): string {
  const { quote } = dialect;
  const row = (name: string): string => `rows_.${quote(name)}`;
  const pull = (name: string): string => `pull_.${quote(name)}`;
  const first = (...names: readonly string[]): string | null => {
    const found = names.filter((name) => columns.has(name)).map(row);
    // Snowflake's has at least two arguments.
    return found.length < 2 ? (found[0] ?? null) : `COALESCE(${found.join(', ')})`;
  };
  const textOf = (name: string, value: string): string => asText(columns.get(name) as Column, value, dialect);
  const table = tableName(dialect, definition.name);
  const span = spanOf(definition);
  const [begin, end] = [first(...(span?.first ?? [])), first(...(span?.last ?? []))];
  const [since, until] = span?.inDays === true ? ['since_day', 'until_day'] : ['since_at', 'until_at'];
  const provider = first('source_provider', 'source_slug');
  const keys = definition.key.filter((name) => name !== 'user_id');
  const held = keys.map((name, n) => `${textOf(name, quote(name))} AS k${n}_`);
  const names = ['user_id', ...keys.map((_, n) => `k${n}_`)];
  const isHeld = `same_.has_ IS NOT NULL AND same_.has_ >= ${pull('began_at')}`;
  const unknown = hasRowId(definition) ? [`${row(ROW_ID.name)} IS NULL`] : [];
  const lacks = [...unknown, `NOT (${isHeld})`].join(' AND ');
  const list = identity.map((name) => textOf(name, row(name))).join(', ');
  const unbounded = `${pull(since)} IS NULL AND ${pull(until)} IS NULL`;
  return [
    `  SELECT ${dialect.comparesStructs === true ? `(${list})` : list}`,
    `  FROM ${table} AS rows_`,
    `  JOIN ${tableName(dialect, WHOLE_PULLS.name)} AS pull_`,
    `    ON ${pull('user_id')} = ${row('user_id')}${columns.has('resource') ? ` AND ${pull('resource')} = ${row('resource')}` : ''}`,
    `  LEFT JOIN (`,
    `    SELECT ${[quote('user_id'), ...held].join(', ')}, MAX(${quote(LOADED_AT.name)}) AS has_`,
    `    FROM ${table}`,
    `    WHERE ${quote('_event_id')} IS NULL`,
    `    GROUP BY ${names.map((_, n) => n + 1).join(', ')}`,
    `  ) AS same_`,
    `    ON same_.${quote('user_id')} = ${row('user_id')}${keys.map((name, n) => ` AND same_.k${n}_ = ${textOf(name, row(name))}`).join('')}`,
    `  WHERE ${pull('of_table')} = ${dialect.literal(definition.name)}`,
    `    AND (${pull('provider')} IS NULL${provider === null ? '' : ` OR ${pull('provider')} = ${provider}`})`,
    begin === null || end === null
      ? `    AND ${unbounded}`
      : `    AND ((${unbounded}) OR (${begin} >= ${pull(since)} AND ${end} ${span?.inDays === true ? '<=' : '<'} ${pull(until)}))`,
    `    AND COALESCE(${row('_received_at')}, ${row(LOADED_AT.name)}) < ${pull('began_at')}`,
    `    AND (${row('_event_id')} IS NULL OR (${lacks}))`,
  ].join('\n');
}
