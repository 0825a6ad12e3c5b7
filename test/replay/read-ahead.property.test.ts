import { execFile } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatRecords } from '../../src/core/archive-record.ts';
import { dryRun } from '../../src/replay/dry-run.ts';
import type { Selection } from '../../src/replay/selection.ts';
import type { Candidate, Problem } from '../../src/replay/unit.ts';
import { makeEvent, TEAM, USER } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { archivedEvent, writeArchive } from './made-up-archive.ts';
import { runCount } from '../support/run-count.ts';
import { filesOf, listing, readerOf, unitsOf } from './support.ts';

const NOON = Date.UTC(2026, 10, 21, 12);

interface Seen {
  readonly found: Candidate[];
  readonly problems: Problem[];
  read: number;
}

async function* inTurn<T>(items: readonly T[]): AsyncGenerator<T> {
  await Promise.resolve();
  yield* items;
}

/** Reads a folder as a replay does; `onFound` is called with each event in turn. */
async function readFolder(
  folder: string,
  some: Partial<Selection> = {},
  onFound: (candidate: Candidate) => void = () => undefined,
): Promise<Seen> {
  const about = listing(undefined, some);
  const reader = readerOf({ selection: about.selection });
  const seen: Seen = { found: [], problems: [], read: 0 };
  // As a replay does it: the list is made before anything is read.
  const units = filesOf(await unitsOf(folder, about));
  const { counts } = await dryRun(
    inTurn(units),
    {
      read: (unit, from, signal) => {
        if (unit.kind !== 'file') throw new Error(`not a file: ${unit.kind}`);
        return reader.read(unit, from, signal);
      },
      destinations: {
        wants: (candidate) => {
          onFound(candidate);
          return seen.found.push(candidate) > 0;
        },
        targetsFor: () => [],
      },
      pseudonymiser: (event) => event,
      onProblem: (problem) => seen.problems.push(problem),
    },
    new AbortController().signal,
  );
  seen.read = counts.read;
  return seen;
}

/** A text as a member of JSON, one of its characters as an escape: another writer may do so. */
function escaped(text: string, at: number): string {
  const json = JSON.stringify(text).slice(1, -1);
  if (/[^ -~]|\\/.test(json) || json === '') return `"${json}"`;
  const place = at % json.length;
  const unit = json.charCodeAt(place).toString(16).padStart(4, '0');
  return `"${json.slice(0, place)}\\u${unit}${json.slice(place + 1)}"`;
}

const text = fc.oneof(
  fc.constantFrom(TEAM, USER, USER.toUpperCase(), 'daily.data.meal.created', 'daily.', 'lab', ''),
  fc.string({ unit: fc.constantFrom('a', '"', '\\', '}', 'é', '\u{1f600}', '\n', '.') }),
);
const line = fc
  .record({
    kind: fc.constantFrom('record', 'record', 'escaped', 'key', 'foreign', 'cut', 'garbage', 'empty'),
    type: text,
    team: fc.option(text),
    user: fc.option(text),
    receivedAt: fc.constantFrom(NOON - 1, NOON, NOON + 1),
    at: fc.nat(1000),
  })
  .map(({ kind, type, team, user, receivedAt, at }) => {
    const event = makeEvent({ id: `msg_${at}`, type, team, user, receivedAt });
    const record = formatRecords([event]).toString().slice(0, -1);
    if (kind === 'escaped') return record.replace(/("event_type":)"[^"\\]*"/, `$1${escaped(type, at)}`);
    if (kind === 'key') return record.replace('"user_id"', '"user\\u005fid"');
    // Events without a record must have a valid envelope.
    if (kind === 'foreign') return JSON.stringify({ event_type: 'lab.x', team_id: TEAM, user_id: USER, at });
    if (kind === 'cut') return record.slice(0, 40 + (at % 20));
    if (kind === 'garbage') return `{"id":"made up${at}`;
    return kind === 'empty' ? '' : record;
  });

const PACKED = {
  'ndjson.gz': (bytes: Buffer) => gzipSync(bytes),
  // Two members, as what was appended to a file.
  'jsonl.gz': (bytes: Buffer) =>
    Buffer.concat([gzipSync(bytes.subarray(0, 99)), gzipSync(bytes.subarray(99))]),
  'ndjson.zst': (bytes: Buffer) => zstdCompressSync(bytes),
  ndjson: (bytes: Buffer) => bytes,
} as const;

function write(folder: string, name: string, bytes: Buffer): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), bytes);
}

/** One after another, all at once, by JSON.parse alone: the events' places and what could not be read. */
function plainly(folder: string, { types, teams, users, since, until }: Selection): Record<string, string[]> {
  const result = { found: [] as string[], problems: [] as string[] };
  for (const name of readdirSync(folder).toSorted()) {
    const file = readFileSync(join(folder, name));
    const bytes = name.endsWith('.gz')
      ? gunzipSync(file)
      : name.endsWith('.zst')
        ? zstdDecompressSync(file)
        : file;
    for (const [at, one] of bytes.toString().split('\n').entries()) {
      if (one === '') continue;
      const where = `${join(folder, name)}:${at + 1}`;
      const value = parsed(one);
      const type = value?.['event_type'];
      if (value === null || typeof type !== 'string') {
        result.problems.push(where);
        continue;
      }
      if (types.length > 0 && !types.some((prefix) => type.startsWith(prefix))) continue;
      if (!isOneOf(value['team_id'], teams) || !isOneOf(value['user_id'], users)) continue;
      const received = Date.parse(String(value['received_at']));
      if (Number.isNaN(received) && (since !== null || until !== null)) result.problems.push(where);
      else if (!(received < (since ?? -Infinity) || received >= (until ?? Infinity)))
        result.found.push(where);
    }
  }
  return result;
}

/** Whether an id is among those that are asked for; all are when none is. */
function isOneOf(one: unknown, ids: readonly string[]): boolean {
  return ids.length === 0 || (typeof one === 'string' && ids.some((id) => id === one || sameUuid(id, one)));
}

function sameUuid(one: string, other: string): boolean {
  return /^[0-9a-f-]{36}$/i.test(one) && one.toLowerCase() === other.toLowerCase();
}

function parsed(one: string): Record<string, unknown> | null {
  try {
    return JSON.parse(one) as Record<string, unknown>;
  } catch {
    return null;
  }
}

test('whatever lies in the files, what is found and what is not readable is what a plain reader finds, in order', async () => {
  const root = await temporaryFolder();
  const selection = fc.record({
    types: fc.array(text, { maxLength: 2 }),
    teams: fc.array(text, { maxLength: 1 }),
    users: fc.array(text, { maxLength: 2 }),
    since: fc.option(fc.constant(NOON), { freq: 1 }),
    until: fc.option(fc.constant(NOON + 1), { freq: 1 }),
  });
  const file = fc.tuple(fc.constantFrom(...Object.keys(PACKED)), fc.array(line, { maxLength: 12 }));
  let [runs, found] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(file, { maxLength: 6 }), selection, async (files, wanted) => {
      const folder = join(root, String((runs += 1)));
      for (const [at, [kind, lines]] of files.entries()) {
        const bytes = Buffer.from(lines.map((one) => `${one}\n`).join(''));
        write(folder, `${at}.${kind}`, PACKED[kind as keyof typeof PACKED](bytes));
      }
      const expected = files.length === 0 ? { found: [], problems: [] } : plainly(folder, wanted);
      const seen = files.length === 0 ? null : await readFolder(folder, wanted);
      expect(seen?.found.map(({ where }) => where) ?? []).toEqual(expected['found']);
      expect(seen?.problems.map(({ where }) => where) ?? []).toEqual(expected['problems']);
      expect(seen?.read ?? 0).toBe(files.reduce((sum, [, lines]) => sum + lines.length, 0));
      found += expected['found']?.length ?? 0;
    }),
    { numRuns: runCount({ quick: 100, long: 500 }) },
  );
  expect(found).toBeGreaterThan(5);
});

test('one broken file of ten: named, read as far as it goes, and all others whole and in order', async () => {
  const folder = await temporaryFolder();
  const events = writeArchive(folder, { files: 10, each: 1000, only: 'ndjson.gz' });
  const broken = join(folder, '0004.ndjson.gz');
  truncateSync(broken, Math.floor(readFileSync(broken).length * 0.9));
  const { found, problems } = await readFolder(folder);
  expect(problems.map(({ where }) => where)).toEqual([broken]);
  const ids = found.map(({ event }) => event.id);
  const lost = events.length - ids.length;
  expect(lost).toBeGreaterThan(0);
  expect(lost).toBeLessThan(1000);
  expect(ids).toEqual(events.toSpliced(5000 - lost, lost).map(({ id }) => id));
});

test('files that are replaced, removed or added while the first one is read', async () => {
  const folder = await temporaryFolder();
  const events = writeArchive(folder, { files: 10, each: 300, only: 'ndjson.gz' });
  const name = (n: number): string => join(folder, `000${n}.ndjson.gz`);
  const other = archivedEvent(10_000);
  let changed = false;
  const { found, problems } = await readFolder(folder, {}, () => {
    if (changed) return;
    changed = true;
    // As an erasure does it: the old file stays what it was for who has it open.
    for (const n of [0, 1, 8]) {
      writeFileSync(`${name(n)}.tmp`, gzipSync(formatRecords([other])));
      renameSync(`${name(n)}.tmp`, name(n));
    }
    rmSync(name(9));
    writeFileSync(join(folder, '0010.ndjson'), formatRecords([archivedEvent(5)]));
  });
  const last = events.slice(300, 2400).map(({ id }) => id);
  const ids = found.map(({ event }) => event.id);
  expect(ids.slice(0, 300)).toEqual(events.slice(0, 300).map(({ id }) => id));
  // Of the second file either all of the old one or all of the new one.
  const second = ids.slice(300, -1801);
  const either = [last.slice(0, 300), [other.id]];
  expect(either).toContainEqual(second);
  expect(ids.slice(-1801)).toEqual([...last.slice(300), other.id]);
  expect(problems).toEqual([{ where: name(9), reason: expect.stringContaining('ENOENT') }]);
});

test('memory stays bounded when everything is taken: 4 files of 128 MiB each, read at once', async () => {
  const folder = await temporaryFolder();
  const body = Buffer.from(`{"event_type":"a.b","pad":"${'x'.repeat(2 ** 18)}"}`);
  const packed = gzipSync(formatRecords(Array.from({ length: 64 }, () => makeEvent({ body }))), { level: 1 });
  for (let n = 0; n < 4; n += 1) {
    const members = Array.from({ length: 8 }, () => packed);
    writeFileSync(join(folder, `000${n}.ndjson.gz`), Buffer.concat(members));
  }
  const child = join(import.meta.dirname, 'dense-archive.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [child, folder]);
  const { selected, grown } = JSON.parse(stdout) as { selected: number; grown: number };
  expect(selected).toBe(4 * 8 * 64);
  expect(grown / 2 ** 20).toBeLessThan(250);
});
