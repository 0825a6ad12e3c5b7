import { DuckDBInstance } from '@duckdb/node-api';
import { statSync } from 'node:fs';

// Reads a meal document into a table of its meals, in memory. All types are given: looking for them first, as DuckDB does
// otherwise, more than doubles its time.

const FATS = ['total', 'saturated', 'monounsaturated', 'polyunsaturated', 'omega3', 'omega6'];
const FOOD = `STRUCT(
  energy STRUCT(unit VARCHAR, "value" DOUBLE),
  macros STRUCT(carbs DOUBLE, protein DOUBLE, sugar DOUBLE, fats STRUCT(${typed(FATS, 'DOUBLE')})),
  micros STRUCT(minerals STRUCT(sodium DOUBLE)))`;
const TEXTS = ['id', 'user_id', 'name', 'timestamp', 'calendar_date', 'created_at', 'updated_at'];
const MEAL = `STRUCT(
  ${typed([...TEXTS, 'provider_id', 'source_app_id'], 'VARCHAR')}, ${typed(['source_id', 'priority_id'], 'BIGINT')},
  source STRUCT(${typed(['app_id', 'device_id', 'provider', 'type', 'name', 'slug', 'logo'], 'VARCHAR')}),
  energy STRUCT(unit VARCHAR, "value" DOUBLE), data MAP(VARCHAR, ${FOOD}))`;

// As many threads as there are cores, unless their number is given.
const [, , path = '', threads] = process.argv;
const options = threads === undefined ? {} : { threads };
const db = await (await DuckDBInstance.create(':memory:', options)).connect();
await db.run(`CREATE TABLE meals AS SELECT unnest(meals) AS meal FROM read_json('${path}',
  columns = {meals: '${MEAL}[]'}, maximum_object_size = ${statSync(path).size + 1})`);
const result = await db.runAndReadAll('SELECT count(meal.id) FROM meals');
process.stdout.write(`${result.getRows().join()}\n`);
db.closeSync();

function typed(names: readonly string[], type: string): string {
  return names.map((name) => `"${name}" ${type}`).join(', ');
}
