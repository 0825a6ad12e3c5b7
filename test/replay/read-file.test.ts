import { appendFileSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { formatRecords } from '../../src/core/archive-record.ts';
import { formatSealed } from '../../src/core/sealed-record.ts';
import type { Selection } from '../../src/replay/selection.ts';
import type { Candidate, Problem } from '../../src/replay/unit.ts';
import { makeEvent, TEAM, USER } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { archivedEvent, writeArchive } from './made-up-archive.ts';
import { filesOf, listing, readerOf, readUnits, unitsOf } from './support.ts';

interface Everything {
  readonly found: Candidate[];
  readonly problems: Problem[];
  readonly read: number;
  readonly erased: number;
}

async function readAll(
  path: string,
  some: Partial<Selection> = {},
  parts: Parameters<typeof readerOf>[0] = {},
): Promise<Everything> {
  const about = listing(undefined, some);
  const reader = readerOf({ selection: about.selection, ...parts });
  const { found, problems, steps } = await readUnits(await unitsOf(path, about), reader);
  const sum = (count: 'read' | 'erased'): number => steps.reduce((all, { counts }) => all + counts[count], 0);
  return { found, problems, read: sum('read'), erased: sum('erased') };
}

const idsOf = ({ found }: Everything): string[] => found.map(({ event }) => event.id);

describe('archive records', () => {
  test('of gzip, zstd and plain files, each as it was received', async () => {
    const folder = await temporaryFolder();
    const events = writeArchive(folder, { files: 6, each: 200 });
    const { found, problems, read } = await readAll(folder);
    expect({ problems, read }).toEqual({ problems: [], read: 1200 });
    expect(found.map(({ event }) => event)).toEqual(events);
    expect(found[201]?.where).toBe(join(folder, '0001.ndjson.zst:2'));
  });

  test('every byte is counted, however slowly the steps are taken', async () => {
    const folder = await temporaryFolder();
    writeArchive(folder, { files: 1, each: 3000, only: 'ndjson.gz' });
    const [unit] = filesOf(await unitsOf(folder));
    let [bytes, steps] = [0, 0];
    for await (const { counts } of readerOf().read(unit!, 0)) {
      bytes += counts.bytes;
      steps += 1;
      await setImmediate();
    }
    expect(steps).toBeGreaterThan(5);
    expect(bytes).toBe(unit!.bytes);
  });

  test('a damaged line is named with its file and number; the others are read', async () => {
    const folder = await temporaryFolder();
    writeArchive(folder, { files: 1, each: 5, only: 'ndjson' });
    const file = join(folder, '0000.ndjson');
    const lines = readFileSync(file, 'utf8').split('\n');
    lines[1] = lines[1]!.slice(0, -20);
    lines[3] = 'garbage';
    writeFileSync(file, lines.join('\n').slice(0, -1));
    const { found, problems, read } = await readAll(folder);
    expect(found.map(({ at }) => at)).toEqual([1, 3]);
    expect(read).toBe(5);
    expect(problems.map(({ where }) => where)).toEqual([`${file}:2`, `${file}:4`, `${file}:5`]);
    expect(problems[2]?.reason).toContain('no end');
  });

  test('an unfinished file is read as far as it went when the list was made', async () => {
    const folder = await temporaryFolder();
    mkdirSync(join(folder, '_open/0123456789ab'), { recursive: true });
    const part = join(folder, '_open/0123456789ab/x.part');
    writeFileSync(part, formatRecords([archivedEvent(0), archivedEvent(1)]));
    const units = await unitsOf(folder);
    appendFileSync(part, formatRecords([archivedEvent(2)]));
    expect((await readUnits(units)).found.map(({ at }) => at)).toEqual([1, 2]);
    // A line that is just being written is no damage.
    appendFileSync(part, '{"id":"half');
    expect((await readAll(folder)).problems).toEqual([]);
  });

  test('an unfinished file that was finished after the list was made is read under its name', async () => {
    const folder = await temporaryFolder();
    mkdirSync(join(folder, '_open/0123456789ab'), { recursive: true });
    writeFileSync(join(folder, '_open/0123456789ab/x.part'), formatRecords([archivedEvent(0)]));
    const units = await unitsOf(folder);
    writeFileSync(join(folder, 'x.ndjson.gz'), gzipSync(formatRecords([archivedEvent(0)])));
    truncateSync(join(folder, '_open/0123456789ab/x.part'));
    expect((await readUnits(units)).found).toHaveLength(1);
  });

  test('continues behind a line, unless the file has changed since', async () => {
    const folder = await temporaryFolder();
    writeArchive(folder, { files: 1, each: 10, only: 'ndjson' });
    const units = await unitsOf(folder);
    const placesFrom = async (from: number): Promise<number[]> =>
      (await readUnits(units, undefined, from)).found.map(({ at }) => at);
    expect(await placesFrom(7)).toEqual([8, 9, 10]);
    expect(await placesFrom(10)).toEqual([]);
    writeFileSync(join(folder, '0000.ndjson'), formatRecords([archivedEvent(3), archivedEvent(4)]));
    expect(await placesFrom(7)).toEqual([1, 2]);
  });

  test('claim checks and symbolic links beside the records are not read', async () => {
    const folder = await temporaryFolder();
    writeArchive(folder, { files: 1, each: 2, only: 'ndjson' });
    writeFileSync(join(folder, '_manifest.jsonl'), '');
    mkdirSync(join(folder, 'claim-checks/t/u'), { recursive: true });
    writeFileSync(
      join(folder, 'claim-checks/t/u/2026-11-21T100000.000Z#a.b#msg_1.json'),
      '{"event_type":"a.b"}',
    );
    symlinkSync('/etc/hostname', join(folder, 'link.ndjson'));
    const { found, problems } = await readAll(folder);
    expect(found).toHaveLength(2);
    expect(problems.map(({ where }) => where)).toEqual([join(folder, 'link.ndjson')]);
  });

  test('a sealed record is opened, counted as erased, or a problem', async () => {
    const folder = await temporaryFolder();
    const key = '0'.repeat(32);
    const received_at = '2026-11-21T12:00:00.000Z';
    const sealed = formatSealed({ key, received_at, nonce: Buffer.alloc(12), data: Buffer.from('made up') });
    writeFileSync(join(folder, 'a.ndjson'), sealed);
    const line = formatRecords([archivedEvent(1)]).subarray(0, -1);
    const opened = await readAll(folder, {}, { opener: { open: () => ({ ok: true, line }) } });
    expect(opened.found).toHaveLength(1);
    const erased = await readAll(folder, {}, { opener: { open: () => ({ ok: false, why: 'erased' }) } });
    expect(erased).toMatchObject({ found: [], problems: [], erased: 1 });
    const closed = await readAll(folder);
    expect(closed.problems.map(({ where }) => where)).toEqual([join(folder, 'a.ndjson:1')]);
  });
});

describe('archives made by others', () => {
  const body = '{"event_type":"daily.data.meal.created","data":{"made":"up"},"user_id":"u1"}';

  test('one event a line: its bytes, an id from them, the envelope from the body', async () => {
    const folder = await temporaryFolder();
    mkdirSync(join(folder, 'deep/er'), { recursive: true });
    writeFileSync(join(folder, 'deep/er/a.jsonl'), `${body}\r\n\n${body.replace('u1', 'u2')}`);
    writeFileSync(join(folder, 'deep/notes.txt'), 'not an event');
    const { found, problems } = await readAll(folder);
    expect(problems).toEqual([]);
    expect(found.map(({ event }) => [event.body.toString(), event.type, event.team, event.user])).toEqual([
      [body, 'daily.data.meal.created', null, 'u1'],
      [body.replace('u1', 'u2'), 'daily.data.meal.created', null, 'u2'],
    ]);
    const ids = found.map(({ event }) => event.id);
    expect(ids[0]).toMatch(/^sha256_[0-9a-f]{64}$/);
    expect(idsOf(await readAll(folder))).toEqual(ids);
    expect(new Set(ids).size).toBe(2);
    expect(await readAll(folder, { users: ['u2'] })).toMatchObject({ found: [{ at: 3 }] });
  });

  test('lines that are no event, and events without a time, are named', async () => {
    const folder = await temporaryFolder();
    const record = `{"id": "a", "received_at": "2026-11-21T12:00:00.000Z", "event_type": "x", "event": {}}`;
    writeFileSync(join(folder, 'a.json'), `${body}\n[1]\n{"no":"type"}\n${record}\n{"id":"x",\n`);
    const { found, problems } = await readAll(folder);
    expect(found).toHaveLength(1);
    expect(problems.map(({ where }) => where.split(':').at(-1))).toEqual(['2', '3', '4', '5']);
    expect(problems[2]?.reason).toContain('archive record');
    const dated = await readAll(folder, { since: 0, types: ['daily.'] });
    expect(dated.found).toEqual([]);
    expect(dated.problems[0]).toEqual({
      where: join(folder, 'a.json:1'),
      reason: 'nothing says when it was received',
    });
    expect((await readAll(folder, { since: 0, types: ['lab'] })).problems).toHaveLength(4);
  });

  test('the blob layout: id, time and type from the name, zipped or not, over several lines or not', async () => {
    const folder = await temporaryFolder();
    const place = join(folder, TEAM, USER);
    mkdirSync(place, { recursive: true });
    const pretty = JSON.stringify(JSON.parse(body), null, 2);
    writeFileSync(join(place, '2026-11-01T10:00:00+01:00#daily.data.meal.created#key-1.json'), pretty);
    writeFileSync(join(place, '2026-11-02T100000.250Z#raw.made_up.x#key#2.json.gz'), gzipSync('{"a":1}'));
    writeFileSync(join(place, '2026-11-03T10:00:00Z#daily.data.x#key-3.json'), '{"cut');
    const { found, problems } = await readAll(folder);
    expect(problems.map(({ where }) => where)).toEqual([
      join(place, '2026-11-03T10:00:00Z#daily.data.x#key-3.json'),
    ]);
    expect(
      found.map(({ event: { id, type, team, user, receivedAt } }) => [id, type, team, user, receivedAt]),
    ).toEqual([
      ['key-1', 'daily.data.meal.created', TEAM, 'u1', Date.UTC(2026, 10, 1, 9)],
      ['key#2', 'raw.made_up.x', TEAM, USER, Date.UTC(2026, 10, 2, 10, 0, 0, 250)],
    ]);
    expect(found[0]?.event.body.toString()).toBe(pretty);
    // The name alone rules the damaged one out.
    expect(await readAll(folder, { types: ['raw.'] })).toMatchObject({
      found: [{ where: expect.stringContaining('#key#2') }],
      problems: [],
    });
  });
});

test('claim checks on their own: a day in the path is no user', async () => {
  const folder = await temporaryFolder();
  const place = join(folder, 'claim-checks', TEAM, '2026-11-21');
  mkdirSync(place, { recursive: true });
  const name = '2026-11-21T101530.250Z#raw.made_up.x#msg_1.json';
  writeFileSync(join(place, name), '{"event_type":"raw.made_up.x"}');
  writeFileSync(join(place, name.replace('msg_1', 'msg_2')), `{"user_id":"${USER}"}`);
  const { found } = await readAll(join(folder, 'claim-checks'));
  expect(found.map(({ event: { id, team, user } }) => [id, team, user])).toEqual([
    ['msg_1', TEAM, null],
    ['msg_2', TEAM, USER],
  ]);
  const ofUser = await readAll(join(folder, 'claim-checks'), { users: [USER] });
  expect(idsOf(ofUser)).toEqual(['msg_2']);
});

test('a path that is not there is an error that names it', async () => {
  await expect(unitsOf('/no/such/made-up/path')).rejects.toThrow('/no/such/made-up/path');
});

test('the largest of ids and bodies survives', async () => {
  const folder = await temporaryFolder();
  const event = makeEvent({
    id: 'x'.repeat(9000),
    body: Buffer.from(`{"event_type":"a","pad":"${'ü'.repeat(400_000)}"}`),
  });
  writeFileSync(join(folder, 'a.ndjson.gz'), gzipSync(formatRecords([event, event])));
  expect((await readAll(folder)).found.map(({ event: { body } }) => body.equals(event.body))).toEqual([
    true,
    true,
  ]);
});

test('ids that no webhook could have are replaced by their hashes, or their records named', async () => {
  const folder = await temporaryFolder();
  const odd = ['a\u001b[31m', 'a b', 'é', 'x'.repeat(10_000), 'a\nb', '../fine'];
  const events = odd.map((id) => makeEvent({ id }));
  writeFileSync(join(folder, 'foreign.ndjson'), formatRecords(events));
  const blobs = join(folder, TEAM, USER);
  mkdirSync(blobs, { recursive: true });
  const name = `2026-11-21T10:15:30.250Z#daily.data.meal.created#${encodeURIComponent('a b')}.json`;
  writeFileSync(join(blobs, name), events[0]?.body ?? '');
  const all = await readAll(folder);
  // No writer of ours needs an escape in an id.
  expect(all.problems.map(({ where }) => where.slice(-2))).toEqual([':1', ':5']);
  for (const id of idsOf(all)) expect(id).toMatch(/^[\x21-\x7e]{1,256}$/);
  // The one in the name of a file is the second of the records.
  expect([idsOf(all).length, new Set(idsOf(all)).size]).toEqual([5, 4]);
  expect(idsOf(all)).toContain('../fine');
});
