import { DuckDBInstance } from '@duckdb/node-api';
import { join } from 'node:path';

// Reads an archive and writes tables as Parquet, of the same types as `millrace export` writes. All types are given:
// looking for them first, as DuckDB does otherwise, takes longer. What no column takes (`extra`) it passes over.

const DECIMAL = 'DECIMAL(38,18)';
const FATS = ['total', 'saturated', 'monounsaturated', 'polyunsaturated', 'omega3', 'omega6'];
const MACROS = ['carbs', 'protein', 'sugar', 'alcohol', 'water', 'fibre', 'cholesterol'];
const MICROS = {
  minerals: 'sodium potassium calcium phosphorus magnesium iron zinc fluoride chloride',
  trace_elements: 'chromium copper iodine manganese molybdenum selenium',
  vitamins:
    'vitamin_a vitamin_b1 riboflavin niacin pantothenic_acid vitamin_b6 biotin vitamin_b12 vitamin_c vitamin_d vitamin_e vitamin_k folic_acid',
};
const MICRO_NAMES = Object.entries(MICROS).map(([kind, names]) => [kind, names.split(' ')] as const);
const NUTRITION = `energy STRUCT(unit VARCHAR, "value" ${DECIMAL}),
  macros STRUCT(${typed(MACROS, DECIMAL)}, fats STRUCT(${typed(FATS, DECIMAL)})),
  micros STRUCT(${MICRO_NAMES.map(([kind, names]) => `${kind} STRUCT(${typed(names, DECIMAL)})`).join(', ')})`;
const SOURCE = ['provider', 'type', 'app_id', 'device_id', 'name', 'slug', 'logo'];
const TEXTS = ['id', 'user_id', 'name', 'provider_id', 'source_app_id'];
const TIMES = ['timestamp', 'created_at', 'updated_at'];
const INTEGERS = ['source_id', 'priority_id'];
const MEAL = `STRUCT(${typed(TEXTS, 'VARCHAR')}, ${typed(TIMES, 'TIMESTAMPTZ')}, calendar_date DATE,
  ${typed(INTEGERS, 'BIGINT')}, source STRUCT(${typed(SOURCE, 'VARCHAR')}), ${NUTRITION},
  data MAP(VARCHAR, STRUCT(${NUTRITION})))`;
const ENVELOPE = ['id', 'source', 'event_type', 'team_id', 'user_id', 'client_user_id'];
/** What the rows of an event repeat of its record. */
const ABOUT = `_event_id, _event_type, _received_at, _team_id, _user_id, _client_user_id`;

const [, , archive = '', out = '', table = '', compression = '', threads = ''] = process.argv;
const db = await (await DuckDBInstance.create(':memory:', threads === '' ? {} : { threads })).connect();
await db.run(`SET TimeZone = 'UTC'`);
for (const statement of table === 'events' ? events() : meals()) await db.run(statement);
db.closeSync();

function events(): string[] {
  const columns = `${shape(ENVELOPE, 'VARCHAR')}, received_at: 'TIMESTAMPTZ', headers: 'JSON', event: 'JSON', body_base64: 'VARCHAR'`;
  const select = `id, source, received_at, event_type, team_id, user_id, client_user_id, headers, event, body_base64`;
  const about = `id AS _event_id, event_type AS _event_type, received_at AS _received_at, received_at AS _loaded_at`;
  return [copy('events', `SELECT ${select}, ${about} FROM ${read(columns)}`)];
}

/** Keeps what it has read in memory for the second table: reading twice takes it longer. */
function meals(): string[] {
  const columns = `${shape(ENVELOPE, 'VARCHAR')}, received_at: 'TIMESTAMPTZ', event: 'STRUCT(data ${MEAL})'`;
  const from = `SELECT event.data AS d, id AS _event_id, event_type AS _event_type, received_at AS _received_at,
    team_id AS _team_id, user_id AS _user_id, client_user_id AS _client_user_id FROM ${read(columns)}`;
  const own = [...TEXTS, ...TIMES, 'calendar_date', ...INTEGERS].map((name) => `d."${name}" AS "${name}"`);
  const source = ['type', 'app_id', 'device_id', 'name', 'logo'].map(
    (name) => `d.source."${name}" AS "source_${name}"`,
  );
  const meal = [
    ...own,
    `coalesce(d.source.provider, d.source.slug) AS source_provider`,
    ...source,
    ...nutrition('d'),
  ];
  const item = `d.id AS meal_id, d.user_id, d."timestamp" AS meal_timestamp, d.updated_at AS meal_updated_at,
    item_index, e.key AS name, ${nutrition('e."value"').join(', ')}`;
  const items = `SELECT d, ${ABOUT}, unnest(map_entries(d.data)) AS e, generate_subscripts(map_entries(d.data), 1) - 1 AS item_index FROM documents`;
  return [
    `CREATE TEMP TABLE documents AS ${from}`,
    copy('meals', `SELECT ${meal.join(', ')}, ${ABOUT}, _received_at AS _loaded_at FROM documents`),
    copy('meal_items', `SELECT ${item}, ${ABOUT}, _received_at AS _loaded_at FROM (${items})`),
  ];
}

function nutrition(at: string): string[] {
  const paths = [
    ...['value', 'unit'].map((name) => ['energy', name]),
    ...MACROS.map((name) => ['macros', name]),
    ...FATS.map((name) => ['macros', 'fats', name]),
    ...MICRO_NAMES.flatMap(([kind, names]) => names.map((name) => ['micros', kind, name])),
  ];
  return paths.map(
    (path) => `${at}.${path.map((name) => `"${name}"`).join('.')} AS "${path.slice(-2).join('_')}"`,
  );
}

function read(columns: string): string {
  return `read_ndjson('${join(archive, '*.ndjson.gz')}', columns = {${columns}})`;
}

function copy(name: string, query: string): string {
  return `COPY (${query}) TO '${join(out, name)}.parquet' (FORMAT parquet, COMPRESSION ${compression})`;
}

function typed(names: readonly string[], type: string): string {
  return names.map((name) => `"${name}" ${type}`).join(', ');
}

function shape(names: readonly string[], type: string): string {
  return names.map((name) => `${name}: '${type}'`).join(', ');
}
