import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { ROOT } from '../support/millrace.ts';
import { firstLack, lacksProgram, lacksWorking, skipped } from '../support/requirements.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { filesSink, signal } from '../sinks/support.ts';

const EXAMPLES = join(ROOT, 'deploy/reprocessing');
const PYTHON = process.env['MILLRACE_TEST_PYTHON'] ?? 'python3';
const noSpark = firstLack(lacksProgram('java'), lacksWorking('pyspark', PYTHON, ['-c', 'import pyspark']));
/** Which no engine may write otherwise. */
const BODY = (n: number): string =>
  `{"n":${n},"big":9007199254740993,"z":1.10,"a":[1E2, -0],"z":"\\u00e9 é","event":{},"body_base64":"eA=="}`;

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** An archive in which each record stands twice, as after a replay, or a crash of a deliverer. */
async function makeArchive(folder: string): Promise<{ archive: string; rows: string[][] }> {
  const archive = join(folder, 'archive');
  const { sink } = filesSink(archive);
  await sink.open();
  const types = ['daily.data.meal.created', 'labtest.created'];
  const events = Array.from({ length: 6 }, (_, n) =>
    contractEvent(n, { id: `msg_${n}`, type: types[n % 2] ?? '', body: Buffer.from(BODY(n)) }),
  );
  await sink.send(
    events.map((event) => ({ event, destination: null })),
    signal,
  );
  await sink.close(signal);
  const written = readdirSync(archive, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.includes('.ndjson'),
  );
  expect(written).not.toEqual([]);
  for (const name of written) {
    const copy = join(archive, 'again', name);
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(join(archive, name), copy);
  }
  return {
    archive,
    rows: events.map(({ id, type, receivedAt }, n) => [dayOf(receivedAt), type, id, BODY(n)]),
  };
}

async function connect(): Promise<DuckDBConnection> {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  onTestFinished(() => connection.closeSync());
  return connection;
}

async function rowsIn(connection: DuckDBConnection, out: string): Promise<unknown> {
  const read = await connection.runAndReadAll(
    `SELECT dt::VARCHAR, type, id, event::VARCHAR FROM read_parquet('${out}/**/*.parquet', hive_partitioning = true) ORDER BY id`,
  );
  return read.getRowsJson();
}

test('DuckDB reads an archive once more, each event once', async () => {
  const folder = await temporaryFolder();
  const { archive, rows } = await makeArchive(folder);
  const connection = await connect();
  const out = join(folder, 'out');
  await connection.run(`SET VARIABLE archive = '${archive}'; SET VARIABLE out = '${out}';`);
  await connection.run(readFileSync(join(EXAMPLES, 'duckdb.sql'), 'utf8'));
  expect(await rowsIn(connection, out)).toEqual(rows);
});

// Spark takes ten seconds to come up, and a minute on a busy machine.
test.skipIf(noSpark !== null)(
  `Spark reads an archive once more, each event once${skipped(noSpark)}`,
  async () => {
    const folder = await temporaryFolder();
    const { archive, rows } = await makeArchive(folder);
    const out = join(folder, 'out');
    const env = {
      ...process.env,
      SPARK_LOCAL_IP: '127.0.0.1',
      SPARK_LOCAL_HOSTNAME: 'localhost',
      PYSPARK_SUBMIT_ARGS: '--master local[1] pyspark-shell',
    };
    const { status, stderr } = spawnSync(PYTHON, [join(EXAMPLES, 'spark.py'), archive, out], {
      cwd: folder,
      encoding: 'utf8',
      env,
    });
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
    expect(await rowsIn(await connect(), out)).toEqual(rows);
  },
);
