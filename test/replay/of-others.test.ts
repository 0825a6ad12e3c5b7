import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { replayCommand } from '../../src/cli/replay/command.ts';
import { formatRecords } from '../../src/core/archive-record.ts';
import { run } from '../cli/run.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { archivedEvent } from './made-up-archive.ts';
import { filesOf, readerOf, readUnits, unitsOf } from './support.ts';

const event = (n: number): string =>
  `{"event_type":"labtest.order.created","user_id":"u1","data":{"id":"o${n}"}}`;
const events = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => event(from + n));
const pretty = (n: number): string => JSON.stringify(JSON.parse(event(n)), null, 2);
const message = (n: number): string =>
  `{"id": "msg_${n}", "timestamp": "2026-11-28T10:00:0${n}Z", "payload": ${event(n)}}`;
const RECORD = formatRecords([archivedEvent(1)]).toString();

/** Writes a folder of files and counts what a replay of it would send. */
async function dryRun(files: Readonly<Record<string, string | Buffer>>, args: string[] = [], path = '.') {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, {
    sinks: { archive: { type: 'files', path: join(folder, 'archive') } },
    routes: [{ match: '*', to: ['archive'] }],
  });
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, 'in', name)), { recursive: true });
    writeFileSync(join(folder, 'in', name), bytes);
  }
  const about = ['--dry-run', '--json', '--config', config, ...args];
  const { exit, stdout, stderr } = await run(replayCommand, [join(folder, 'in', path), ...about]);
  const { selected, problems } = JSON.parse(stdout) as { selected: number; problems: number };
  const lines = stderr
    .replaceAll(`${join(folder, 'in')}/`, '')
    .trimEnd()
    .split('\n');
  return { exit, selected, problems, lines: stderr === '' ? [] : lines };
}

test.each<[what: string, file: string | Buffer, events: number, problems: string[]]>([
  ['a byte order mark', `\uFEFF${event(1)}\n${event(2)}\n`, 2, []],
  ['a byte order mark in the middle', `${event(1)}\n\uFEFF${event(2)}\n`, 2, []],
  ['two documents on a line', `${event(1)}${event(2)}\n${event(3)}\n`, 3, []],
  ['no line breaks', events(1, 4).join(''), 4, []],
  ['spaces and commas between documents', `${events(1, 2).join(' ')},\t${event(3)}`, 3, []],
  ['an array on one line', `[${events(1, 3).join()}]\n`, 3, []],
  ['an array over several lines', `[\n${events(1, 3).join(',\n')}\n]\n`, 3, []],
  ['documents over several lines', `${pretty(1)}\n${pretty(2)}`, 2, []],
  ['an array of documents over several lines', `[${pretty(1)},\r\n${pretty(2)}]`, 2, []],
  ['brackets, quotes and backslashes in strings', event(1).replace('o1', '}]{[\\"\\\\'), 1, []],
  ['nothing in an array', '[]', 0, []],
  ['gzip without the extension', gzipSync(events(1, 2).join('')), 2, []],
  ['zstd without the extension', zstdCompressSync(Buffer.from(event(1))), 1, []],
  ['records between documents', `${event(1)}\n${RECORD}${event(2)}\n`, 3, []],
  [
    'an array without its end',
    `[${event(1)},\n`,
    1,
    ['x.json:1: the file ends in the middle of a document or an array'],
  ],
  [
    'a file that ends in a document',
    `${event(1)}\n{"event_type":"a",\n`,
    1,
    ['x.json:2: the file ends in the middle of a document or an array'],
  ],
  [
    'a damaged line before whole ones',
    `{"cut":[\n${event(1)}\n${event(2)}\n`,
    2,
    ['x.json:2#1: the body is not JSON'],
  ],
  ['a damaged line before a record', `{"cut":[\n${RECORD}`, 1, ['x.json:2#1: the body is not JSON']],
  ['a string that its line cuts off', `{"cut":"[\n${event(1)}\n`, 1, ['x.json:1: the body is not JSON']],
  [
    'a damaged document among others',
    `${event(1)}{"a":}${event(2)}`,
    2,
    ['x.json:1#2: the body is not JSON'],
  ],
  ['something else', `${event(1)} 7 ${event(2)}`, 2, ['x.json:1#2: the body is JSON but not an object']],
])('documents as others write them: %s', async (_, bytes, selected, lines) => {
  expect(await dryRun({ 'x.json': bytes })).toEqual({
    exit: lines.length === 0 ? 0 : 3,
    selected,
    problems: lines.length,
    lines,
  });
});

test.each([
  ['bytes after the members', Buffer.concat([gzipSync(event(1)), Buffer.alloc(500)]), 1],
  [
    'a line feed between members',
    Buffer.concat([gzipSync(`${event(1)}\n`), Buffer.from('\n'), gzipSync(event(2))]),
    2,
  ],
])('gzip: %s are no damage', async (_, bytes, selected) => {
  expect(await dryRun({ 'x.ndjson.gz': bytes })).toMatchObject({ exit: 0, selected, lines: [] });
});

test('gzip: what stands before a damaged member is read', async () => {
  const second = gzipSync(`${event(2)}\n`);
  second.writeUInt32LE(7, second.length - 8);
  const { exit, selected, lines } = await dryRun({
    'x.ndjson.gz': Buffer.concat([gzipSync(`${event(1)}\n`), second]),
  });
  expect({ exit, lines }).toEqual({
    exit: 3,
    lines: ['x.ndjson.gz: the compressed data does not match its checksum'],
  });
  expect(selected).toBeGreaterThanOrEqual(1);
});

test('a tree of files with any names: what begins with JSON is read, the rest is named', async () => {
  const files = {
    '2026/11/28/events-1-3f2a': events(1, 4).join(''),
    '2026/11/28/events-2-91bc.gz': gzipSync(events(5, 7).join('')),
    '2026/11/28/events-3.log': ` \n[${event(8)}]`,
    '2026/11/28/notes.txt': 'not an event',
    '2026/11/28/more.txt': 'not an event either',
    '2026/11/28/empty': '',
    '2026/11/28/.x.swp': event(9),
    '2026/11/28/x.ndjson.tmp': event(9),
  };
  expect(await dryRun(files)).toEqual({
    exit: 0,
    selected: 8,
    problems: 0,
    lines: [
      '2026/11/28/.x.swp: passed over: its name is that of a hidden or an unfinished file',
      '2026/11/28/empty: passed over: it is empty',
      '2026/11/28/more.txt: passed over: it does not begin with a JSON object',
      '2 times: passed over: its name is that of a hidden or an unfinished file; also 2026/11/28/x.ndjson.tmp',
      '2 times: passed over: it does not begin with a JSON object; also 2026/11/28/notes.txt',
    ],
  });
  expect(await dryRun(files, [], '2026/11/28/events-1-3f2a')).toMatchObject({ exit: 0, selected: 4 });
});

test.each([
  ['a folder of nothing', { 'notes.txt': 'made up' }, '.', 'in: no file in it has events'],
  ['empty files', { 'a.ndjson': '', 'b.json': '' }, '.', 'in: no file in it has events'],
  ['an empty file', { 'a.ndjson': '' }, 'a.ndjson', 'a.ndjson: it is empty'],
])('where something was named and nothing can be read: %s', async (_, files, path, line) => {
  const { exit, lines } = await dryRun(files, [], path);
  expect([exit, lines.at(-1)]).toEqual([3, expect.stringContaining(line)]);
});

const AT = ['--body-at', '/payload', '--id-at', '/id', '--time-at', '/timestamp'];

test.each([
  [
    'text',
    (n: number) => `{"id":"m","payload":${JSON.stringify(event(n))}}`,
    '--body-at /payload --id-at /id',
  ],
  ['an object', message, '--body-at /payload --id-at /id --time-at /timestamp'],
  [
    'base64',
    (n: number) =>
      `{"message":{"data":"${Buffer.from(event(n)).toString('base64')}","messageId":"7","publishTime":1790000000}}`,
    '--body-at /message/data --id-at /message/messageId --time-at /message/publishTime',
  ],
])(
  'messages with the event inside, as %s: one line says which options to use, and they do',
  async (_, of, options) => {
    const files = { 'x.jsonl': [1, 2, 3].map(of).join('\n') };
    const text = `this looks like a message with the event inside: use ${options}`;
    expect(await dryRun(files)).toEqual({
      exit: 3,
      selected: 0,
      problems: 3,
      lines: [`x.jsonl:1: ${text}`, `3 times: ${text}; also x.jsonl:2, x.jsonl:3`],
    });
    expect(await dryRun(files, options.split(' '))).toEqual({ exit: 0, selected: 3, problems: 0, lines: [] });
  },
);

test('messages with the event inside: the time selects, a type may stand beside, what lacks is named', async () => {
  const files = { 'x.jsonl': [1, 2, 3].map(message).join('\n') };
  expect(await dryRun(files, [...AT, '--since', '2026-11-28T10:00:02Z'])).toMatchObject({
    exit: 0,
    selected: 2,
  });
  const typed = {
    'x.json': '{"kind":"daily.made.up","a/b":{"c":{"x":1.0}}}{"kind":"daily.made.up"}{"a/b":{"c":7}}',
  };
  expect(await dryRun(typed, ['--body-at', '/a~1b/c', '--type-at', '/kind'])).toMatchObject({
    selected: 1,
    lines: ['x.json:1#2: nothing is at /a~1b/c', 'x.json:1#3: no event is at /a~1b/c'],
  });
  await expect(dryRun(files, ['--id-at', 'id'])).rejects.toThrow('--id-at id: must be a JSON Pointer');
});

test('bodies are the bytes inside, and a read continues behind any document', async () => {
  const folder = await temporaryFolder();
  writeFileSync(join(folder, 'x'), `${event(1)}${event(2)}\n\n${pretty(3)}\n[${event(4)},\n${event(5)}]`);
  const units = filesOf(await unitsOf(folder));
  const all = await readUnits(units);
  expect(all.problems).toEqual([]);
  const bodies = all.found.map(({ event: { body } }) => body.toString());
  expect(bodies).toEqual([event(1), event(2), pretty(3), event(4), event(5)]);
  for (const [index, { at }] of all.found.entries()) {
    const rest = await readUnits(units, readerOf(), at);
    expect(rest.found.map(({ event: { body } }) => body.toString())).toEqual(bodies.slice(index + 1));
  }
});
