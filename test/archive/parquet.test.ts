import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fileChunks } from '../../src/archive/file-lines.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { archiveBytes } from '../../src/archive/write-file.ts';
import { formatRecords } from '../../src/core/archive-record.ts';
import { toParquet } from '../../src/archive/to-parquet.ts';
import { SpooledBytes } from '../../src/lib/spooled-bytes.ts';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { deltalake, lacksDeltalake } from '../delta/deltalake.ts';
import { skipped } from '../support/requirements.ts';
import { deliver, filesSink, items, records, signal, tempFolder } from '../sinks/support.ts';
import { queryDuckdb } from '../support/duckdb.ts';

async function linesOf(bytes: Buffer): Promise<Buffer> {
  const chunks = async function* (): AsyncGenerator<Buffer> {
    yield await Promise.resolve(bytes);
  };
  return Buffer.concat(await Array.fromAsync(fileChunks({ chunks }, 'made-up.records.parquet')));
}

const parquetOf = (lines: Buffer, compress: 'gzip' | 'zstd' | 'none' = 'gzip'): Promise<Buffer> =>
  archiveBytes(lines, { form: 'parquet', compress });

const text = fc.string({ unit: 'binary' });
const anyRecord = fc
  .record({
    id: text,
    source: text,
    type: text,
    team: fc.option(text),
    user: fc.option(text),
    clientUser: fc.option(text),
    receivedAt: fc.integer({ min: -1e13, max: 4e14 }),
    headers: fc.dictionary(text, text),
    body: fc.oneof(
      fc.constantFrom(...awkwardBodies().filter(({ length }) => length < 2000)),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      fc.jsonValue().map((value) => Buffer.from(JSON.stringify({ value }))),
    ),
  })
  .map((fields) => formatRecords([contractEvent(1, fields)]));
/** A record with some bytes changed, as a disk may do it. */
const damaged = fc
  .tuple(anyRecord, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 }))))
  .map(([line, changes]) => {
    const copy = Buffer.from(line);
    for (const [at, byte] of changes) if (byte !== 10) copy[at % (copy.length - 1)] = byte;
    return copy;
  });

describe('records in a Parquet file', () => {
  it('are read back byte for byte, damaged ones too, however they came and are compressed', async () => {
    const codec = fc.constantFrom('gzip', 'zstd', 'none');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(anyRecord, damaged)),
        codec,
        fc.nat(),
        async (all, compress, cut) => {
          const lines = Buffer.concat(all);
          const bytes = await parquetOf(lines, compress);
          expect((await linesOf(bytes)).equals(lines)).toBe(true);
          const at = cut % (lines.length + 1);
          const pieces = [lines.subarray(0, at), lines.subarray(at)];
          const again = Buffer.concat(await Array.fromAsync(toParquet(pieces, { compress })));
          expect(again.equals(bytes)).toBe(true);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('come in row groups that a reader can hold', async () => {
    const padding = 'x'.repeat(1000);
    const events = Array.from({ length: 20_000 }, (_, n) =>
      contractEvent(n, { body: Buffer.from(`{"padding":"${n}${padding}"}`) }),
    );
    const lines = formatRecords(events);
    const bytes = await parquetOf(lines, 'zstd');
    const path = join(tempFolder(), 'made-up.records.parquet');
    writeFileSync(path, bytes);
    const groups = await queryDuckdb(
      `SELECT DISTINCT row_group_id, row_group_num_rows::INT FROM parquet_metadata('${path}') ORDER BY 1`,
    );
    expect(groups.length).toBeGreaterThan(2);
    expect(groups.reduce((sum, [, rows]) => sum + Number(rows), 0)).toBe(20_000);
    // The bodies' least and greatest would be in the footer twice for each group.
    expect(bytes.length - bytes.lastIndexOf(padding.slice(0, 100))).toBe(bytes.length + 1);
    expect((await linesOf(bytes)).equals(lines)).toBe(true);
  });

  it('are not taken from a file that is cut short, changed, or somebody else’s', async () => {
    const bytes = await parquetOf(formatRecords([contractEvent(1)]));
    await expect(linesOf(bytes.subarray(0, -3))).rejects.toThrow('not a Parquet file, or cut short');
    await expect(linesOf(Buffer.alloc(0))).rejects.toThrow('not a Parquet file, or cut short');
    await expect(linesOf(Buffer.from('PAR1 made up PAR1'))).rejects.toThrow('its footer is damaged');
    const path = join(tempFolder(), 'x.parquet');
    await queryDuckdb(`COPY (SELECT 'msg_1' AS id, now() AS received_at) TO '${path}'`);
    await expect(linesOf(readFileSync(path))).rejects.toThrow('not a Parquet file of archive records');
  });

  it('fault 4: with a bit flipped, wherever it is, they are the same or an error, and at once', async () => {
    const lines = formatRecords(Array.from({ length: 20 }, (_, n) => contractEvent(n)));
    const bytes = await parquetOf(lines);
    const wrong: number[] = [];
    for (let at = 0; at < bytes.length; at += 7) {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] as number) ^ (1 << (at % 8));
      const found = await linesOf(copy).catch(() => null);
      if (found?.equals(lines) === false) wrong.push(at);
    }
    expect(wrong).toEqual([]);
  });
});

it('bytes that do not fit into memory are read from a file without a name', async () => {
  const chunks = Array.from({ length: 100 }, (_, n) => Buffer.alloc(1000, n));
  const source = async function* (): AsyncGenerator<Buffer> {
    yield* chunks;
    await Promise.resolve();
  };
  const spooled = await SpooledBytes.of(source(), 10_000);
  expect(spooled.byteLength).toBe(100_000);
  const found = Buffer.from(await spooled.slice(1990, 50_010));
  expect(found.equals(Buffer.concat(chunks).subarray(1990, 50_010))).toBe(true);
  await expect(spooled.slice(99_999, 100_001)).rejects.toThrow('no bytes');
  await spooled.close();
});

const lack = lacksDeltalake();

async function archive(): Promise<string> {
  const path = tempFolder();
  const { sink } = filesSink(path, { format: 'parquet', compress: 'zstd', rotate: { bytes: 4096 } });
  await sink.open();
  await sink.send(deliver(1, 20), signal);
  const bodies = [...awkwardBodies(), Buffer.from([255, 0, 10]), Buffer.from('[]')];
  const awkward = bodies.map((body, n) => ({
    event: contractEvent(100 + n, { body, user: `\r\n"\\ ${n}`, team: null }),
    destination: null,
  }));
  await sink.send(awkward, signal);
  await sink.close(signal);
  return path;
}

const files = (path: string): string[] =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.parquet'))
    .map((file) => join(path, file));

/** What was sent, as a warehouse is to see it. */
function expected(): unknown[][] {
  const bodies = [...awkwardBodies(), Buffer.from([255, 0, 10]), Buffer.from('[]')];
  return [
    ...Array.from({ length: 20 }, (_, n) => [`msg_${n + 1}`, contractEvent(n + 1).body.toString('base64')]),
    ...bodies.map((body, n) => [`msg_${100 + n}`, body.toString('base64')]),
  ];
}

describe('an archive of Parquet files', () => {
  const ask = deltalake();

  it('verifies, and is read as lines are', async () => {
    const path = await archive();
    expect(files(path).length).toBeGreaterThan(0);
    expect(await verifyArchive(path)).toMatchObject({ records: 36, differences: [], notes: [] });
    const found = (await records(path)).map(({ record, body }) => [record.id, body.toString('base64')]);
    expect(found).toEqual(expected());
  });

  it('is read by DuckDB without options, with types, Hive folders, and every body', async () => {
    const path = await archive();
    const from = `read_parquet('${path}/**/*.parquet')`;
    const types = await queryDuckdb(`DESCRIBE SELECT * FROM ${from}`);
    expect(Object.fromEntries(types.map(([name, type]) => [name, type]))).toMatchObject({
      id: 'VARCHAR',
      received_at: 'TIMESTAMP WITH TIME ZONE',
      event: 'VARCHAR',
      dt: 'DATE',
    });
    const body = `coalesce(body_base64, to_base64(encode(event)))`;
    expect(await queryDuckdb(`SELECT id, ${body} FROM ${from} ORDER BY received_at`)).toEqual(expected());
    expect(await queryDuckdb(`SELECT event->>'$.data.id' FROM ${from} WHERE id = 'msg_7'`)).toEqual([
      ['meal-7'],
    ]);
    const ms = await queryDuckdb(
      `SELECT epoch_ms(received_at)::VARCHAR FROM ${from} WHERE user_id = 'user-3' LIMIT 1`,
    );
    expect(ms).toEqual([[String(contractEvent(3).receivedAt)]]);
  });

  it.skipIf(lack !== null)(`is read by PyArrow, every field${skipped(lack)}`, async () => {
    const found: { readonly rows: readonly Record<string, unknown>[] }[] = [];
    for (const file of files(await archive())) found.push(await ask('parquet', file));
    const rows = found.flatMap((file) => file.rows);
    expect(
      rows.map(({ id, event, body_base64: exact }) => [
        id,
        exact ?? Buffer.from(String(event)).toString('base64'),
      ]),
    ).toEqual(expected());
    expect(rows[1]).toMatchObject({
      source: 'webhooks',
      received_at: '2026-11-21 03:15:02.125000+00:00',
      event_type: 'daily.data.meal.created',
      team_id: 'team-1',
      user_id: 'user-2',
      line_base64: null,
    });
    expect(JSON.parse(String(rows[1]?.['headers']))).toEqual(contractEvent(2).headers);
    expect(rows[20]).toMatchObject({ team_id: null, user_id: '\r\n"\\ 0' });
  });

  it('with a flipped bit is a difference, by name', async () => {
    const path = await archive();
    const [file = ''] = files(path);
    const bytes = readFileSync(file);
    bytes[40] = (bytes[40] as number) ^ 4;
    writeFileSync(file, bytes);
    const { differences } = await verifyArchive(path);
    expect(differences.map((one) => join(path, one.file))).toContain(file);
    expect((await items(path)).length).toBeGreaterThan(0);
  });
});
