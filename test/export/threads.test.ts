import { hash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { formatRecords } from '../../src/core/archive-record.ts';
import type { JournalEvent } from '../../src/core/event.ts';
import { Shaping } from '../../src/export/shaping.ts';
import { UNIT, type Unit, UnitWriter } from '../../src/export/unit.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { temporaryFolder } from '../support/folders.ts';
import { duckdb, exported, mealEvent, mealOf, EVERYTHING } from './support.ts';

// Exports of several units, which threads shape: nothing may tell how many there were, or which one did what.

const FILES = 6;
const PER_FILE = 75;
/** So many bytes that six files make a few units. */
const PADDING = 'x'.repeat(60_000);

/** Every fifth event is a meal; the others have no row in that table. All are large. */
function eventOf(n: number): JournalEvent {
  if (n % 5 !== 0) {
    const body = `{"event_type":"made.up","data":{"n":${n},"padding":"${PADDING}"},"user_id":"user-1"}`;
    return contractEvent(n, { type: 'made.up', body: Buffer.from(body) });
  }
  const meal = mealEvent(n);
  const body = meal.body.toString().replace('"never_seen":', `"padding":"${n}${PADDING}","never_seen":`);
  return { ...meal, body: Buffer.from(body) };
}

/** The last file has a line that is no record, the one before it ends in the middle of one. */
async function manyUnits(): Promise<string> {
  const path = await temporaryFolder();
  mkdirSync(path, { recursive: true });
  for (let file = 0; file < FILES; file += 1) {
    const events = Array.from({ length: PER_FILE }, (_, n) => eventOf(file * PER_FILE + n + 1));
    const records = events.map((event) => formatRecords([event]).toString());
    if (file === FILES - 1) records[10] = 'no record\n';
    if (file === FILES - 2) records.push(`{"id":"cut short`);
    writeFileSync(join(path, `${file}.ndjson.gz`), gzipSync(records.join(''), { level: 1 }));
  }
  return path;
}

const expected = Array.from({ length: FILES * PER_FILE }, (_, n) => n + 1).filter(
  (n) => n !== (FILES - 1) * PER_FILE + 11,
);

/** @param size of the pieces in which the file comes */
function unitsOf(events: readonly JournalEvent[], size = 100_000): Unit[] {
  const writer = new UnitWriter((file, line, reason) => expect.unreachable(`${file}:${line}: ${reason}`));
  const units: Unit[] = [];
  const bytes = formatRecords(events);
  writer.begin('made-up.ndjson');
  for (let from = 0; from < bytes.length;) {
    const taken = writer.add(bytes.subarray(from, from + size));
    if (taken === 0) units.push(writer.take());
    from += taken;
  }
  expect(writer.end(false)).toBe(events.length);
  units.push(writer.take());
  return units;
}

/** All that came of a unit, with hashes of bytes: compared one by one they would take seconds. */
function factsOf(value: unknown): unknown {
  if (value instanceof Uint8Array || value instanceof Int32Array || value instanceof Uint32Array)
    return hash('sha256', value);
  if (Array.isArray(value) || value instanceof Map) return Array.from(value, factsOf);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, of]) => (name === 'text' ? [] : [[name, factsOf(of)]])),
  );
}

const copyOf = (unit: Unit): Unit => ({ ...unit, text: unit.text.slice() });

describe('an export of several units', () => {
  it.each(['parquet', 'ndjson'] as const)(
    '%s: every row is there once, in order, and what is wrong is named by its line',
    async (format) => {
      const path = await manyUnits();
      const out = await temporaryFolder();
      const summary = await exported([path], out, { format, partition: 'none', stepBytes: 2 ** 40 });
      expect(summary).toMatchObject({ steps: 1, records: expected.length, problems: 2, rejects: 0 });
      expect(summary.messages.toSorted()).toEqual([
        `${FILES - 2}.ndjson.gz:${PER_FILE + 1}: the line has no end`,
        `${FILES - 1}.ndjson.gz:11: not an archive record`,
      ]);
      const sql = await duckdb();
      const from =
        format === 'parquet'
          ? `read_parquet('${out}/events/*.parquet')`
          : `read_ndjson('${out}/events/*.gz', columns = {id: 'VARCHAR', event: 'JSON'})`;
      const found = await sql(`SELECT id, length(event::VARCHAR) > ${PADDING.length} FROM ${from}`);
      expect(found).toEqual(expected.map((n) => [`msg_${n}`, true]));
    },
  );

  it('rows of several units that are few become one row group', async () => {
    const path = await manyUnits();
    const out = await temporaryFolder();
    await exported([path], out, { table: 'meals', partition: 'none', stepBytes: 2 ** 40 });
    const sql = await duckdb();
    const meals = expected.filter((n) => n % 5 === 0);
    const items = meals.reduce((sum, n) => sum + (n % 4), 0);
    const facts = `SELECT num_row_groups::INT, num_rows::INT FROM parquet_file_metadata`;
    expect(await sql(`${facts}('${out}/meal_items/*.parquet')`)).toEqual([[1, items]]);
    // These are large: each unit has a row group of its own.
    const [[groups] = []] = await sql(`${facts}('${out}/meals/*.parquet')`);
    expect(groups).toBeGreaterThan(1);
    expect(await sql(`SELECT id FROM read_parquet('${out}/meals/*.parquet')`)).toEqual(
      meals.map((n) => [mealOf(n).id]),
    );
  });
});

describe('a unit makes the same rows', () => {
  it.each([
    ['events', 'parquet', 'zstd', 'none'],
    ['meals', 'parquet', 'gzip', 'dt'],
    ['meals', 'ndjson', 'zstd', 'dt'],
  ] as const)(
    '%s, %s, %s, by %s: in any thread, in this one, and whatever was before',
    async (table, format, compression, partition) => {
      const selection = EVERYTHING;
      const terms = { tables: TABLES, table, format, compression, partition, selection };
      const [threads, one] = [new Shaping(terms), new Shaping(terms)];
      onTestFinished(async () => {
        await threads.close();
        await one.close();
      });
      const units = unitsOf(Array.from({ length: 3 * PER_FILE }, (_, n) => eventOf(n + 1)));
      expect(units.length).toBeGreaterThan(1);
      const inThreads = await Promise.all(units.map((unit) => threads.shape(copyOf(unit), false)));
      for (const [at, unit] of [...units.entries()].toReversed())
        expect(factsOf(await one.shape(copyOf(unit), true))).toEqual(factsOf(inThreads[at]));
    },
  );

  it('whatever the pieces are in which the files come', () => {
    const events = Array.from({ length: 2 * PER_FILE }, (_, n) => eventOf(n + 1));
    const facts = (size: number): unknown =>
      unitsOf(events, size).map(({ text, ends, stretches }) => ({
        lines: hash('sha256', text.subarray(0, ends.at(-1))),
        ends: factsOf(ends),
        stretches,
      }));
    expect(facts(777_777)).toEqual(facts(3 * UNIT));
  });

  it('a line can be longer than a unit', async () => {
    const long = contractEvent(2, { body: Buffer.from(`{"padding":"${'y'.repeat(UNIT)}"}`) });
    const events = [contractEvent(1), long, contractEvent(3)];
    const lines = unitsOf(events).flatMap(({ text, ends }) =>
      Array.from(ends, (end, at) =>
        Buffer.from(text).toString('latin1', at === 0 ? 0 : ends[at - 1]! + 1, end),
      ),
    );
    expect(lines.join('\n')).toBe(formatRecords(events).toString('latin1').trimEnd());
  });

  it('lines that are not kept are named by their number, and the next one by its own', () => {
    const messages: string[] = [];
    const writer = new UnitWriter((...problem) => void messages.push(problem.join(' ')), 20);
    const file = (name: string, text: string, isDamaged = false): number => {
      writer.begin(name);
      let bytes = Buffer.from(text);
      // Only a unit that is full says that a line is too long.
      while (bytes.length > 0) {
        const taken = writer.add(bytes);
        if (taken === 0) units.push(writer.take());
        bytes = bytes.subarray(taken);
      }
      return writer.end(isDamaged);
    };
    const units: Unit[] = [];
    const tooLong = 'x'.repeat(UNIT + 1);
    expect(file('a', `one\n${tooLong}\nthree\nfour`)).toBe(4);
    expect(file('b', `one\ntwo`, true)).toBe(1);
    expect(file('c', tooLong)).toBe(1);
    expect(messages).toEqual([
      'a 2 the line is too long',
      'a 4 the line has no end',
      'c 1 the line is too long',
    ]);
    expect(units.map(({ stretches }) => stretches)).toEqual([
      [{ file: 'a', from: 0, number: 1 }],
      [
        { file: 'a', from: 0, number: 3 },
        { file: 'b', from: 1, number: 1 },
      ],
    ]);
  });
});
