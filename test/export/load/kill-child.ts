// Fills a database until it is killed, or done; run by kill.long.test.ts.
// Arguments: load, address, schema, folder; or sink, address, schema, first and last number of the events to be sent.
// Prints `begun` once it is connected. The sink's child also prints the number of the last event of each batch once it is delivered, as a journal would note it.
import { writeSync } from 'node:fs';
import { Places } from '../../../src/archive/places.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { DuckDBDatabase } from '../../../src/export/load/duckdb.ts';
import { runLoad } from '../../../src/export/load/run.ts';
import { parseOptions } from '../../../src/sinks/postgres/config.ts';
import { PostgresDatabase } from '../../../src/sinks/postgres/database.ts';
import { createSink } from '../../../src/sinks/postgres/sink.ts';
import { TABLES } from '../../../src/tables/tables.ts';
import { mealEvent } from '../support.ts';
import { QUIET } from './quiet.ts';

const NAMES = ['events', 'meals', 'meal_items'];
const BATCH = 20;
const [what, address = '', schema = '', ...rest] = process.argv.slice(2);
const { signal } = new AbortController();
const quiet = (): void => undefined;

if (what === 'sink') await send(Number(rest[0]), Number(rest[1]));
else await load(rest[0] ?? '');

async function load(folder: string): Promise<void> {
  const database = address.startsWith('postgres:')
    ? await PostgresDatabase.openAlone({ connectionString: address, schema, timeout: 15_000 }, signal)
    : await DuckDBDatabase.open(address);
  writeSync(1, 'begun\n');
  await runLoad(database, {
    paths: [folder],
    places: new Places(),
    tables: TABLES,
    wanted: NAMES,
    stepBytes: 1,
    signal,
    ...QUIET,
  });
  await database.close();
}

async function send(first: number, last: number): Promise<void> {
  const log = { info: quiet, warn: quiet, error: quiet };
  const sink = createSink(parseOptions({ connectionString: address, schema, tables: NAMES }), {
    name: 'warehouse',
    clock: systemClock,
    log,
  });
  await sink.open(signal);
  writeSync(1, 'begun\n');
  for (let n = first; n <= last; n += BATCH) {
    const count = Math.min(BATCH, last - n + 1);
    const batch = Array.from({ length: count }, (_, i) => ({ event: mealEvent(n + i), destination: null }));
    const results = await sink.send(batch, signal);
    if (results.some(({ status }) => status !== 'delivered')) throw new Error(JSON.stringify(results[0]));
    writeSync(1, `${n + count - 1}\n`);
  }
  await sink.close(signal);
}
