import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { digestOf, type FinishedFiles, judge, readFinished, type SentEvent } from './oracle.ts';
import type { Table } from './tables.ts';

const TO_BOTH: Table = {
  routes: [
    { match: ['labtest.'], to: ['archive', 'labs'] },
    { match: '*', to: ['archive'] },
  ],
};
const TO_ARCHIVE: Table = { routes: [{ match: '*', to: ['archive'] }] };

const body = (id: string): string => `{"made":"up ${id}"}`;
const line = (id: string, event = body(id)): string => `{"id":"${id}","event":${event}}\n`;

function sent(id: string, changes: Partial<SentEvent> = {}): SentEvent {
  const digest = digestOf(Buffer.from(body(id)));
  return { id, type: 'labtest.made.up', digest, acknowledged: true, first: 0, last: 0, ...changes };
}

/** What is read of a sink that has these files. */
async function sinkWith(files: Readonly<Record<string, string | Buffer>>): Promise<FinishedFiles> {
  const folder = await temporaryFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return readFinished(folder);
}

test('the oracle: an acknowledged id that is missing at one of its sinks is lost', async () => {
  const archive = await sinkWith({ 'dt=2026-11-21/a.ndjson.gz': gzipSync(line('one') + line('two')) });
  const labs = await sinkWith({ 'dt=2026-11-21/b.ndjson': line('one') });
  const found = new Map([
    ['archive', archive],
    ['labs', labs],
  ]);
  const events = [sent('one'), sent('two'), sent('three', { acknowledged: false })];
  expect(judge(events, found, [[TO_BOTH]])).toEqual({
    lost: ['two (labtest.made.up): acknowledged, and not at labs'],
    wrong: [],
    repeated: 0,
  });
  // Amid a reload either table may have been the one.
  expect(judge(events, found, [[TO_BOTH, TO_ARCHIVE]]).lost).toEqual([]);
  expect(judge(events, found, [[TO_BOTH], [TO_ARCHIVE]]).lost).toHaveLength(1);
});

test('the oracle: other bytes, an id of nobody, a sink of no route and an id twice in one file are wrong', async () => {
  const archive = await sinkWith({
    'a.ndjson': line('one', '{"other":"bytes"}') + line('nobody') + line('two') + line('two'),
  });
  const labs = await sinkWith({ 'b.ndjson': line('two') });
  const { wrong, repeated } = judge(
    [sent('one'), sent('two')],
    new Map([
      ['archive', archive],
      ['labs', labs],
    ]),
    [[TO_ARCHIVE]],
  );
  expect(wrong).toEqual([
    'one at archive: other bytes than were sent',
    'two (labtest.made.up) at labs: no route named it',
    'nobody at archive: never sent',
    'two at archive: twice in a.ndjson',
  ]);
  expect(repeated).toBe(1);
});

test('the oracle: an id in two files is repeated, and nothing worse', async () => {
  const archive = await sinkWith({ 'a.ndjson': line('one'), 'b.ndjson': line('one') });
  const verdict = judge([sent('one')], new Map([['archive', archive]]), [[TO_ARCHIVE]]);
  expect(verdict).toEqual({ lost: [], wrong: [], repeated: 1 });
});

test('the oracle: a torn file under a final name is seen', async () => {
  const whole = gzipSync(line('one').repeat(100));
  const { torn, copies } = await sinkWith({
    'cut.ndjson.gz': whole.subarray(0, -20),
    'empty.ndjson': '',
    'half.ndjson': line('two') + line('three').slice(0, -5),
    '_open/x/y.part': line('four').slice(0, -5),
  });
  expect(torn.map((text) => text.split(':')[0])).toEqual(['cut.ndjson.gz', 'empty.ndjson', 'half.ndjson']);
  expect(copies.size).toBe(0);
});
