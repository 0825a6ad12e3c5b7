import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { replayCommand } from '../../src/cli/replay/command.ts';
import { MANIFEST } from '../../src/core/archive.ts';
import type { Event } from '../../src/core/event.ts';
import { ErasedUsers } from '../../src/privacy/erase/erased-users.ts';
import { run } from '../cli/run.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/until.ts';
import { millraceProcess, writeConfig } from '../support/millrace.ts';
import { expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { jsonLines } from '../support/json-lines.ts';
import { writeArchive } from './made-up-archive.ts';

const CHOOSY = fileURLToPath(new URL('./choosy-sink.ts', import.meta.url));

interface Delivered {
  readonly id: string;
  readonly type: string;
  readonly user: string;
  readonly destination: string | null;
  readonly handling: { readonly replayId?: string };
  readonly body: string;
}

interface Setting {
  readonly folder: string;
  readonly events: readonly Event[];
  replay(...args: string[]): ReturnType<typeof run>;
  delivered(): Delivered[];
}

/** An archive of 200 events, a config with an archive and a sink that refuses `labtest.order.updated`. */
async function setting(env: Record<string, string> = {}): Promise<Setting> {
  const folder = await temporaryFolder();
  const source = join(folder, 'source');
  const events = writeArchive(source, { files: 2, each: 100 });
  const config = writeConfig(folder, {
    erasure: { path: join(folder, 'erasure') },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      own: { type: CHOOSY, folder, refuses: 'labtest.order.updated' },
      unset: { type: 'event-hubs', connectionString: '${MADE_UP_UNSET}', hub: 'events' },
      web: { type: 'http', sign: 'none', targets: { lab: { url: 'https://lab.test/events' } } },
    },
    routes: [
      { match: 'daily.', to: ['own:daily', 'archive'] },
      { match: 'lab_report.', to: ['archive'] },
      { match: '*', to: [] },
    ],
  });
  return {
    folder,
    events,
    replay: (...args) => run(replayCommand, [source, '--config', config, ...args], env),
    delivered: () => {
      const file = join(folder, 'delivered');
      return existsSync(file) ? jsonLines<Delivered>(readFileSync(file)) : [];
    },
  };
}

const idsOf = (some: readonly { readonly id: string }[]): string[] => some.map(({ id }) => id).toSorted();
const ofType = (events: readonly Event[], prefix: string): Event[] =>
  events.filter(({ type }) => type.startsWith(prefix));

describe('where events go', () => {
  test('--to: a place in a sink, whatever the routes say, marked and with their own ids', async () => {
    const { events, replay, delivered } = await setting();
    const args = '--to own:elsewhere --type daily. --id made-up --json'.split(' ');
    const { exit, stdout } = await replay(...args);
    const daily = ofType(events, 'daily.');
    expect({ exit, ...(JSON.parse(stdout) as object) }).toMatchObject({
      exit: 0,
      ok: true,
      complete: true,
      replay_id: 'made-up',
      read: 200,
      selected: daily.length,
      targets: { 'own:elsewhere': daily.length },
    });
    expect(idsOf(delivered())).toEqual(idsOf(daily));
    expect(
      new Set(delivered().map(({ destination, handling }) => `${destination} ${handling.replayId}`)),
    ).toEqual(new Set(['elsewhere made-up']));
    const bodies = new Map(daily.map(({ id, body }) => [id, body.toString()]));
    expect(delivered().filter(({ id, body }) => bodies.get(id) !== body)).toEqual([]);
  });

  test('--routes: where the routes lead; what they lead nowhere is counted', async () => {
    const { folder, events, replay, delivered } = await setting();
    const { exit, stdout } = await replay('--routes', '--json');
    const daily = ofType(events, 'daily.');
    const reports = ofType(events, 'lab_report.');
    const nowhere = events.length - daily.length - reports.length;
    expect({ exit, ...(JSON.parse(stdout) as object) }).toMatchObject({
      exit: 0,
      selected: 200,
      nowhere,
      targets: { 'own:daily': daily.length, archive: daily.length + reports.length },
    });
    expect(idsOf(delivered())).toEqual(idsOf(daily));
    const found = await readBack(join(folder, 'archive'));
    expect([...found.keys()].toSorted()).toEqual(idsOf([...daily, ...reports]));
    expectOnce(found);
    await expectWhole(join(folder, 'archive'));
  });

  test('--to: where the routes lead in that sink, else its default destination; `own:` is always the default', async () => {
    const { folder, events, replay } = await setting();
    const daily = ofType(events, 'daily.').length;
    const targetsOf = async (to: string): Promise<unknown> =>
      (JSON.parse((await replay('--to', to, '--dry-run', '--json')).stdout) as { targets: unknown }).targets;
    expect(await targetsOf('own')).toEqual({ 'own:daily': daily, own: 200 - daily });
    expect(await targetsOf('own:')).toEqual({ own: 200 });
    expect(await targetsOf('archive')).toEqual({ archive: 200 });
    // Without a default destination, only what the routes lead there.
    const config = join(folder, 'millrace.yaml');
    writeFileSync(config, readFileSync(config, 'utf8').replace('own:daily', 'web:lab'));
    expect(await targetsOf('web')).toEqual({ 'web:lab': daily });
  });

  test('--sink: of the routes, that sink only; with --to, what the routes lead there', async () => {
    const { folder, events, replay, delivered } = await setting();
    await replay('--routes', '--sink', 'own');
    expect(idsOf(delivered())).toEqual(idsOf(ofType(events, 'daily.')));
    expect(existsSync(join(folder, 'archive'))).toBe(false);
    await replay('--to', 'archive', '--sink', 'own');
    expect([...(await readBack(join(folder, 'archive'))).keys()].toSorted()).toEqual(
      idsOf(ofType(events, 'daily.')),
    );
  });

  test('two at once, of the same archive: each is whole', async () => {
    const { folder, events, replay, delivered } = await setting();
    const daily = ofType(events, 'daily.');
    const both = ['one', 'other'].map((name) =>
      replay('--to', `own:${name}`, '--type', 'daily.', '--state', join(folder, name), '--json'),
    );
    for (const { stdout } of await Promise.all(both))
      expect(JSON.parse(stdout)).toMatchObject({ ok: true, read: 200, selected: daily.length });
    for (const name of ['one', 'other'])
      expect(idsOf(delivered().filter(({ destination }) => destination === name))).toEqual(idsOf(daily));
  });

  test('the archive into itself: what was there comes once more, and it ends', async () => {
    const { folder, replay } = await setting();
    await replay('--to', 'archive');
    const args = [join(folder, 'archive'), '--to', 'archive', '--json'];
    const again = await run(replayCommand, [...args, '--config', join(folder, 'millrace.yaml')]);
    expect(JSON.parse(again.stdout)).toMatchObject({ ok: true, selected: 200 });
    const found = await readBack(join(folder, 'archive'));
    expect([...found.values()].map((copies) => copies.length)).toEqual(Array.from({ length: 200 }, () => 2));
  });
});

test('events that go to stdout have it to themselves', async () => {
  const { folder, events } = await setting();
  const config = writeConfig(folder, { sinks: { out: { type: 'stdout' } } });
  const args = ['replay', join(folder, 'source'), '--to', 'out', '--config', config];
  const { code, stdout, stderr } = await millraceProcess(args);
  expect(code).toBe(0);
  const ids = jsonLines<{ id: string }>(stdout).map(({ id }) => id);
  expect(ids.toSorted()).toEqual(idsOf(events));
  expect(stderr).toContain('delivered  200 to out');
});

test('--dry-run counts by type and destination, and sends nothing', async () => {
  const { folder, events, replay } = await setting();
  const { exit, stdout } = await replay('--dry-run', '--type', 'daily.', '--type', 'provider.');
  const counts = new Map<string, number>();
  for (const { type } of events) counts.set(type, (counts.get(type) ?? 0) + 1);
  expect(exit).toBe(0);
  expect(stdout).toMatch(
    new RegExp(`daily.data.meal.created +${counts.get('daily.data.meal.created')} +own:daily archive`),
  );
  expect(stdout).toMatch(
    new RegExp(`provider.connection.created +${counts.get('provider.connection.created')} +\\(nowhere\\)`),
  );
  expect(stdout).not.toContain('lab_report');
  expect(readdirSync(folder).toSorted()).toEqual(['millrace.yaml', 'source']);
});

describe('what does not go well', () => {
  test('events a sink refuses: 3, named with file, line and reason, without their bodies', async () => {
    const { folder, events, replay, delivered } = await setting();
    const state = join(folder, 'state');
    const { exit, stdout, stderr } = await replay('--to', 'own:', '--state', state, '--json');
    const refused = ofType(events, 'labtest.order.updated');
    expect(exit).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      complete: true,
      refused: refused.length,
      targets: { own: 200 - refused.length },
    });
    expect(delivered()).toHaveLength(200 - refused.length);
    expect(stderr).toContain('choosy');
    const text = readFileSync(join(state, 'refused.ndjson'), 'utf8');
    const notes = jsonLines<{ found: string }>(text);
    expect(notes[0]).toMatchObject({ target: 'own', code: 'choosy', reason: 'not for me', attempts: 1 });
    const places = refused.map(({ id }) => {
      const at = events.findIndex((event) => event.id === id);
      const file = at < 100 ? '0000.ndjson.gz' : '0001.ndjson.zst';
      return join(folder, 'source', `${file}:${(at % 100) + 1}`);
    });
    expect(notes.map(({ found }) => found).toSorted()).toEqual(places.toSorted());
    // An erasure could not tell whose they are.
    expect(refused.filter(({ id }) => text.includes(id))).toEqual([]);
    expect(stderr + text).not.toContain('sequence');
  });

  test('lines that cannot be read: 3, named; the rest is delivered', async () => {
    const { folder, replay } = await setting();
    writeFileSync(join(folder, 'source/broken.ndjson'), '{"id":"x","source":"y"\n');
    const { exit, stdout, stderr } = await replay('--to', 'archive', '--json');
    expect(exit).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, selected: 200, problems: 1 });
    expect(stderr).toContain(join(folder, 'source/broken.ndjson:1'));
    const dry = await replay('--dry-run');
    expect(dry.exit).toBe(3);
  });

  test('a file that the manifest lists and that is not there: 3, named; the rest is delivered', async () => {
    const { folder, replay } = await setting();
    await replay('--to', 'archive');
    const archive = join(folder, 'archive');
    const lines = readFileSync(join(archive, MANIFEST), 'utf8').trimEnd().split('\n');
    const { file, records } = JSON.parse(lines[0] ?? '') as { file: string; records: number };
    rmSync(join(archive, file));
    const from = [archive, '--config', join(folder, 'millrace.yaml'), '--json'];
    for (const more of [['--to', 'own'], ['--dry-run']]) {
      const { exit, stdout, stderr } = await run(replayCommand, [...from, ...more]);
      expect(exit).toBe(3);
      expect(JSON.parse(stdout)).toMatchObject({ ok: false, selected: 200 - records, problems: 1 });
      expect(stderr).toContain(`${join(archive, file)}: file_missing: listed in the manifest, but missing`);
    }
    for (const line of lines)
      rmSync(join(archive, (JSON.parse(line) as { file: string }).file), { force: true });
    const none = await run(replayCommand, [...from, '--to', 'own']);
    expect([none.exit, JSON.parse(none.stdout)]).toMatchObject([3, { problems: lines.length }]);
  });

  test('an unfinished replay is not started again, and no other is resumed by its name', async () => {
    const { folder, replay } = await setting();
    const state = join(folder, 'state');
    mkdirSync(state);
    await expect(replay('--to', 'own', '--state', state, '--resume')).rejects.toThrow('nothing to resume');
    writeFileSync(join(state, 'plan.json'), '{"id":"a","fingerprint":"other","units":0,"bytes":0}');
    await expect(replay('--to', 'own', '--state', state)).rejects.toThrow('--resume');
    await expect(replay('--to', 'own', '--state', state, '--resume')).rejects.toThrow('another replay');
  });

  test.each([
    [['--to', 'unknown'], /--to unknown: .*archive, own/],
    [['--to', 'web:elsewhere'], /--to: the sink web has no destination elsewhere; it has web:lab/],
    [['--to', 'web'], /--to: the sink web has no default destination/],
    [['--to', 'unset'], /sinks\.unset\.connectionString/],
    [[], /--to SINK, or --routes/],
    [['--to', 'own', '--routes'], /not both/],
    [['--to', 'own', '--since', 'yesterday'], /--since yesterday/],
    [['--to', 'own', '--rate', 'fast'], /--rate fast/],
    [['--to', 'own', '--rate', '0/s'], /--rate 0/],
    [['--to', 'own', '--sink', 'unknown'], /--sink unknown/],
    [['--to', 'own', '--map-user', 'x'], /--map-user/],
    [['--to', 'own', '--pseudonymise'], /--key-env MILLRACE_PSEUDONYM_KEY is not set/],
    [['--to', 'own', '--pseudonymise', '--key-env', 'SHORT'], /SHORT is shorter than 16/],
  ])('usage: %j', async (args, message) => {
    const { replay } = await setting({ SHORT: 'made up' });
    await expect(replay(...args)).rejects.toThrow(message);
    await expect(replay(...args)).rejects.not.toThrow('made up');
  });
});

test('--pseudonymise and --map-user: other ids at the sink, of the same people', async () => {
  const { events, replay, delivered } = await setting({ MADE_UP_KEY: 'a made-up key of tests' });
  const [first] = events;
  const pseudonymise = ['--pseudonymise', '--key-env', 'MADE_UP_KEY'];
  const map = ['--map-user', `${first?.user}=made-up-tester`];
  expect((await replay('--to', 'own', '--type', 'daily.', ...pseudonymise, ...map)).exit).toBe(0);
  const users = new Map<string, Set<string>>();
  const originals = new Map(events.map((event) => [event.id, event]));
  for (const { id, user, body } of delivered()) {
    const original = originals.get(id);
    users.set(original?.user ?? '', (users.get(original?.user ?? '') ?? new Set()).add(user));
    expect(body).not.toContain(original?.user);
    expect(body).not.toContain(original?.team);
    expect(body).not.toContain(`"${original?.clientUser}"`);
  }
  expect(users.size).toBe(new Set(ofType(events, 'daily.').map(({ user }) => user)).size);
  expect([...users.values()].every((names) => names.size === 1)).toBe(true);
  expect(users.get(first?.user ?? '')).toEqual(new Set(['made-up-tester']));
});

test('a user who is erased while a replay waits: what was read of theirs is not sent', async () => {
  const { folder, events, replay, delivered } = await setting();
  const { user, team } = events[199]!;
  const users = ErasedUsers.open(join(folder, 'erasure'));
  const replaying = replay('--to', 'own', '--rate', '150', '--json');
  await until('the first events', () => existsSync(join(folder, 'delivered')));
  await users.block({ request: 'made-up', by: 'user', id: user ?? '', team }, new Date().toISOString());
  const summary = JSON.parse((await replaying).stdout) as { selected: number; erased: number };
  expect(summary.erased).toBeGreaterThan(0);
  expect(summary.selected + summary.erased).toBe(200);
  // All was read long before, at this rate.
  const late = new Set(idsOf(events.slice(150).filter((event) => event.user === user)));
  expect(late.size).toBeGreaterThan(0);
  expect(delivered().filter(({ id }) => late.has(id))).toEqual([]);
});

test('--resume of what is finished says so and sends nothing; of what was never begun it is an error', async () => {
  const { folder, replay, delivered } = await setting();
  const daily = ['--to', 'own', '--type', 'daily.'];
  const first = JSON.parse((await replay(...daily, '--json')).stdout) as { replay_id: string; state: string };
  const count = delivered().length;
  const again = await replay(...daily, '--resume');
  expect([again.exit, again.stderr]).toEqual([0, expect.stringContaining(`${first.replay_id} was finished`)]);
  expect(JSON.parse((await replay(...daily, '--resume', '--json')).stdout)).toMatchObject({
    ok: true,
    complete: true,
    replay_id: first.replay_id,
  });
  expect(delivered()).toHaveLength(count);
  expect(existsSync(first.state)).toBe(false);
  for (const other of [
    ['--to', 'own', '--type', 'lab_report.'],
    [...daily, '--state', join(folder, 'elsewhere')],
  ])
    await expect(replay(...other, '--resume')).rejects.toThrow('nothing was begun');
  // Started again, it is not finished until its end.
  expect((await replay(...daily)).exit).toBe(0);
  expect(delivered()).toHaveLength(2 * count);
  mkdirSync(first.state);
  writeFileSync(join(first.state, 'plan.json'), '{"id":"a","fingerprint":"other","units":0,"bytes":0}');
  await expect(replay(...daily, '--resume')).rejects.toThrow('another replay');
});

test('a replay that names a user leaves nothing that could confirm whom', async () => {
  const { folder, events, replay } = await setting();
  expect((await replay('--to', 'own', '--user', events[0]?.user ?? '', '--type', 'none.')).exit).toBe(0);
  const left = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  expect(left.filter((name) => name.includes('finished'))).toEqual([]);
});

test('what else lies in the folder of the state stays there', async () => {
  const { folder, replay } = await setting();
  const state = join(folder, 'state');
  mkdirSync(state);
  writeFileSync(join(state, 'of-somebody-else.txt'), 'made up');
  const { exit } = await replay('--to', 'archive', '--state', state);
  expect(exit).toBe(0);
  expect(readdirSync(state)).toEqual(['of-somebody-else.txt']);
  writeFileSync(join(state, 'state.json'), '{"made":"up"}');
  await expect(replay('--to', 'archive', '--state', state)).rejects.toThrow(
    /state\.json exists, but is not from a replay/,
  );
  expect(readFileSync(join(state, 'state.json'), 'utf8')).toBe('{"made":"up"}');
});
