import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { ROOT } from '../support/millrace.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { filesSink, signal } from '../sinks/support.ts';

const SQL = readFileSync(join(ROOT, 'deploy/reprocessing/duckdb.sql'), 'utf8');

test('DuckDB reads an archive once more, each event once', async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const { sink } = filesSink(archive);
  await sink.open();
  const types = ['daily.data.meal.created', 'labtest.created'];
  const events = Array.from({ length: 6 }, (_, n) =>
    contractEvent(n, {
      id: `msg_${n}`,
      type: types[n % 2] ?? '',
      body: Buffer.from(`{"n":${n},"big":9007199254740993}`),
    }),
  );
  await sink.send(
    events.map((event) => ({ event, destination: null })),
    signal,
  );
  await sink.close(signal);
  // As after a replay, or a crash of a deliverer: the same records in one file more.
  const written = readdirSync(archive, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.includes('.ndjson'),
  );
  expect(written).not.toEqual([]);
  for (const name of written) {
    const copy = join(archive, 'again', name);
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(join(archive, name), copy);
  }
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  onTestFinished(() => connection.closeSync());
  const out = join(folder, 'out');
  await connection.run(`SET VARIABLE archive = '${archive}'; SET VARIABLE out = '${out}';`);
  await connection.run(SQL);
  const read = await connection.runAndReadAll(
    `SELECT type, id, event->>'$.n', event->>'$.big' FROM read_parquet('${out}/**/*.parquet', hive_partitioning = true) ORDER BY id`,
  );
  expect(read.getRowsJson()).toEqual(
    events.map(({ id, type }, n) => [type, id, String(n), '9007199254740993']),
  );
});
