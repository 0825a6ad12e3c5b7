import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { archiveCommand } from '../../src/cli/archive.ts';
import { checkCommand } from '../../src/cli/check/command.ts';
import { deadLettersCommand, quarantineCommand } from '../../src/cli/set-aside.ts';
import { reconcileCommand } from '../../src/cli/reconcile/command.ts';
import { replayCommand } from '../../src/cli/replay/command.ts';
import { routeCommand } from '../../src/cli/route.ts';
import { statusCommand } from '../../src/cli/status.ts';
import { systemClock } from '../../src/core/clock.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { visible, visibleLines } from '../../src/lib/visible.ts';
import { eventOf, JOURNAL_LIMITS } from '../privacy/erase/support.ts';
import { filesSink, signal } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { Place } from '../support/place.ts';
import { run } from './run.ts';

/** Clears a screen, in both spellings; turns the writing around; writes over its line; and adds one of its own. */
const EVIL = 'made\u001b[2J\u009b2J\u202e\rup\nforged line';
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/;

test('control characters become escapes, and JSON stays the same JSON', () => {
  expect(visible(EVIL)).toBe('made\\u001b[2J\\u009b2J\\u202e\\u000dup\\u000aforged line');
  expect(visibleLines('a\tb\nc é 食')).toBe('a\tb\nc é 食');
  const value = { [EVIL]: EVIL };
  expect(visibleLines(JSON.stringify(value, null, 2))).not.toMatch(HIDDEN);
  expect(JSON.parse(visibleLines(JSON.stringify(value, null, 2)))).toEqual(value);
});

/** A journal, an archive and an event on their own, all with names that would do something to a terminal. */
async function prepare(): Promise<{ config: string; other: string; archive: string; event: string }> {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const config = writeConfig(folder);
  const event = join(folder, 'event.json');
  const fields = { event_type: EVIL, team_id: EVIL, user_id: EVIL, client_user_id: EVIL };
  writeFileSync(event, JSON.stringify(fields));
  const evil = { id: EVIL, type: EVIL, team: EVIL, user: EVIL, clientUser: EVIL, body: Buffer.from(EVIL) };
  const { sink } = filesSink(archive, { compress: 'none' });
  await sink.open();
  await sink.send(
    [{ event: eventOf(1, 1, { type: EVIL, body: readFileSync(event) }), destination: null }],
    signal,
  );
  await sink.close(signal);
  mkdirSync(join(archive, EVIL));
  writeFileSync(join(archive, EVIL, 'x.ndjson'), `{"${EVIL}`);
  const journal = await SqliteJournal.open({
    ...JOURNAL_LIMITS,
    path: join(folder, 'journal'),
    create: true,
    clock: systemClock,
    onFailure: () => undefined,
  });
  await journal.openCursor('archive');
  for (const n of [1, 2, 3])
    await journal.accept(eventOf(2, n, { ...evil, id: `${EVIL}${n}`, receivedAt: Date.now() }));
  journal.moveCursor('archive', 3);
  await journal.quarantine(eventOf(1, 2, evil), [{ code: 'not_json', detail: EVIL }]);
  const dead = { sink: 'archive', destination: EVIL, code: EVIL, reason: EVIL, attempts: 1, diedAt: 1 };
  await journal.addDeadLetter({ ...dead, event: eventOf(1, 3, evil) });
  await journal.close();
  mkdirSync(join(folder, 'other'));
  const routes = [{ match: '*', to: [] }];
  const sinks = { archive: { type: 'files', path: archive } };
  return { config, archive, event, other: writeConfig(join(folder, 'other'), { sinks, routes }) };
}

/** What is run, and what each word in capitals stands for. */
const COMMANDS: readonly (readonly [line: string, command: Parameters<typeof run>[0]])[] = [
  ['quarantine list', quarantineCommand],
  ['quarantine show 1', quarantineCommand],
  ['quarantine show 1 --json', quarantineCommand],
  ['dead-letters list', deadLettersCommand],
  ['dead-letters list --json', deadLettersCommand],
  ['dead-letters show 1', deadLettersCommand],
  ['route --event EVENT', routeCommand],
  ['route --event EVENT --json', routeCommand],
  ['replay ARCHIVE --to archive --dry-run', replayCommand],
  ['archive verify ARCHIVE', archiveCommand],
  ['archive verify ARCHIVE --json', archiveCommand],
  ['check --current CONFIG --against ARCHIVE --config OTHER', checkCommand],
  ['reconcile', reconcileCommand],
  ['status', statusCommand],
];

test('no command prints a control character of an event, or a line of its making', async () => {
  const at = await prepare();
  const places = { ARCHIVE: at.archive, CONFIG: at.config, EVENT: at.event, OTHER: at.other };
  for (const [name, command] of COMMANDS) {
    const words = name.split(' ').slice(1);
    const args = words.map((word) => places[word as keyof typeof places] ?? word);
    const isBare = /OTHER|^archive/.test(name);
    const { stdout, stderr } = await run(command, isBare ? args : [...args, '--config', at.config]);
    const said = stdout + stderr;
    expect([name, HIDDEN.exec(said)]).toEqual([name, null]);
    // A body that is shown as text has the lines it has.
    const lines = said.split('\n').filter((line) => line.startsWith('forged'));
    expect([name, lines.length]).toEqual([name, name.endsWith('show 1') ? 1 : 0]);
    const isNamed = said.includes(String.raw`made\u001b[2J\u009b2J\u202e`);
    expect([name, isNamed]).toEqual([name, name !== 'status']);
  }
});

test('an error names what it is about without control characters', async () => {
  const { code, stderr } = await (await Place.make()).run('route', '--event', EVIL);
  expect(code).toBe(2);
  expect(stderr).not.toMatch(HIDDEN);
  expect(stderr).toContain('\\u001b[2J');
});
