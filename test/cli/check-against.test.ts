import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkCommand } from '../../src/cli/check/command.ts';
import { formatRecords } from '../../src/core/archive-record.ts';
import type { Event } from '../../src/core/event.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { Place } from '../support/place.ts';
import { SECRET } from '../support/signed-events.ts';
import { run } from './run.ts';

const MEAL = 'daily.data.meal.created';
const LAB = 'labtest.order.created';

function event(n: number, type: string): Event {
  const { body } = madeUpEvent(n, type);
  const { team_id: team, user_id: user, client_user_id: clientUser } = JSON.parse(body.toString('utf8'));
  return {
    id: `made_up_${n}`,
    source: 'webhooks',
    type,
    team,
    user,
    clientUser,
    receivedAt: 0,
    headers: {},
    body,
  };
}

/** An archive of 10 meals and 5 lab events in two files. */
function writeArchive(folder: string): string {
  const archive = join(folder, 'archive');
  mkdirSync(archive);
  const events = Array.from({ length: 15 }, (_, n) => event(n, n % 3 === 0 ? LAB : MEAL));
  writeFileSync(join(archive, 'a.ndjson'), formatRecords(events.slice(0, 7)));
  writeFileSync(join(archive, 'b.ndjson'), formatRecords(events.slice(7)));
  return archive;
}

const config = (...lines: readonly string[]): string =>
  [
    `signing: { secrets: ["${SECRET}"] }`,
    'sinks:',
    '  archive: { type: files, path: ./archive }',
    '  labs: { type: files, path: ./labs }',
    ...lines,
  ].join('\n');

const EVERYTHING = '{ match: "*", to: archive }';
const OLD = config(`routes: [${EVERYTHING}]`);
const NEW = config('routes: [{ match: [labtest.], to: labs }, { match: "*", to: [archive] }]');

async function setUp(next: string, old = OLD): Promise<{ archive: string; args: string[] }> {
  const folder = await temporaryFolder();
  const archive = writeArchive(folder);
  const [newer, older] = [join(folder, 'new.yaml'), join(folder, 'old.yaml')];
  writeFileSync(newer, next);
  writeFileSync(older, old);
  return { archive, args: ['--config', newer, '--current', older, '--against', archive] };
}

describe('millrace check --against', () => {
  test('says what moves, how much of it, and names events', async () => {
    const { args } = await setUp(NEW);
    const { stdout, stderr, exit } = await run(checkCommand, args);
    expect({ stderr, exit }).toEqual({ stderr: '', exit: 0 });
    expect(stdout).toContain('moves 33.3 % of 15 events from archive to labs\n');
    expect(stdout).toContain(`    5 ${LAB}, such as made_up_0\n`);
    expect(stdout).toContain('leaves 66.7 % where they go now\n');
    expect(stdout).toContain(['TARGET   NOW  THEN', 'archive  15   10', 'labs     0    5', ''].join('\n'));
  });

  test('--json is the whole report; --exit-code tells a difference by 4', async () => {
    const { archive, args } = await setUp(NEW);
    const { stdout, exit } = await run(checkCommand, [...args, '--json', '--exit-code']);
    expect(exit).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject({
      against: archive,
      events: 15,
      unreadable: 0,
      changed: 5,
      moves: [
        { from: ['archive'], to: ['labs'], events: 5, examples: [{ type: LAB, id: 'made_up_0', events: 5 }] },
      ],
      sinks: { added: [], removed: [], changed: {} },
    });
  });

  test('the same routes in other words move nothing', async () => {
    const { args } = await setUp(config(`routes: [{ match: [labtest.], to: archive }, ${EVERYTHING}]`));
    const { stdout, exit } = await run(checkCommand, [...args, '--exit-code']);
    expect(exit).toBe(0);
    expect(stdout).toContain('every event goes where it went before\n');
  });

  test.each([
    [
      'a copy that is added',
      config(`routes: [{ match: [labtest.], to: [archive, labs] }, ${EVERYTHING}]`),
      'adds 33.3 % of 15 events to labs',
    ],
    [
      'a target that is taken away',
      config('routes: [{ match: [labtest.], to: archive }]'),
      'takes 66.7 % of 15 events away from archive',
    ],
    [
      'an envelope rule that would have refused events',
      `${OLD}\nenvelope: { teams: ["99999999-0000-4000-8000-000000000009"] }`,
      'moves 100.0 % of 15 events from archive to quarantine',
    ],
  ])('names %s', async (_what, next, line) => {
    expect((await run(checkCommand, (await setUp(next)).args)).stdout).toContain(`${line}\n`);
  });

  test('sinks that differ are named with the options that do, never with values', async () => {
    const next = OLD.replace('./archive }', './elsewhere, compress: none }').replace('  labs:', '  other:');
    const { args } = await setUp(next);
    const { stdout } = await run(checkCommand, args);
    expect(stdout).toContain('sink archive changes: path, compress\n');
    expect(stdout).toContain('new sink other: it starts with the events after the change\nsink labs goes\n');
    expect(stdout).not.toContain('elsewhere');
  });

  test('without another config it counts where the events would go', async () => {
    const { archive, args } = await setUp(NEW);
    // The config in force by its place is this one itself.
    const env = { MILLRACE_CONFIG: args[1] ?? '' };
    const { stdout } = await run(checkCommand, ['--config', args[1] ?? '', '--against', archive], env);
    expect(stdout).toContain(['TARGET   EVENTS', 'archive  10', 'labs     5', ''].join('\n'));
  });

  test('a record that cannot be read is named, left out, and ends with 3', async () => {
    const { archive, args } = await setUp(NEW);
    writeFileSync(join(archive, 'c.ndjson'), 'no record\n');
    const { stdout, stderr, exit } = await run(checkCommand, args);
    expect(exit).toBe(3);
    expect(stderr).toContain('warning: c.ndjson:1: ');
    expect(stdout).toContain('1 records could not be read and are not counted\n');
    expect(stdout).toContain('of 15 events');
  });

  test('its options without --against are a slip', async () => {
    const { args } = await setUp(NEW);
    await expect(run(checkCommand, args.slice(0, 4))).rejects.toMatchObject({ code: 'usage' });
  });

  test('reads the journal, of a receiver that runs and of one that is stopped', async () => {
    const place = await Place.make();
    const receiver = await place.start();
    const events = [LAB, MEAL, MEAL].map((type, n) => madeUpEvent(n, type));
    await receiver.send(events);
    const newer = place.at('new.yaml');
    writeFileSync(newer, NEW);
    const args = ['--config', newer, '--current', place.config, '--against', 'journal'];
    const moved = 'moves 33.3 % of 3 events from archive to labs\n';
    expect((await run(checkCommand, args)).stdout).toContain(moved);
    await receiver.stop();
    expect((await run(checkCommand, args)).stdout).toContain(moved);

    const [segment = ''] = segmentsOf(place.at('journal'));
    const bytes = readFileSync(segment);
    const at = bytes.indexOf((events[1] as { body: Buffer }).body) + 20;
    bytes[at] = (bytes[at] as number) ^ 1;
    writeFileSync(segment, bytes);
    const { stdout, stderr, exit } = await run(checkCommand, args);
    expect(exit).toBe(3);
    expect(stderr).toContain('warning: journal:2: the record is damaged\n');
    expect(stdout).toContain('1 records could not be read and are not counted\n');
    expect(stdout).toContain('moves 50.0 % of 2 events from archive to labs\n');
  });
});
