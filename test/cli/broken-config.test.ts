import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { Place, printing, saying } from '../support/place.ts';

/** What becomes of the file while the receiver runs. */
const BREAK: readonly (readonly [what: string, change: (place: Place, text: string) => void])[] = [
  ['is no YAML any more', (place, text) => writeFileSync(place.config, `${text}\nlog: @x\n`)],
  ['names a journal that is no text', (place) => place.edit((config) => (config.journal = 7))],
  ['has a key that is not known', (place) => place.edit((config) => (config.serever = {}))],
  ['routes to no sink', (place) => place.edit((config) => (config.routes = [{ match: '*', to: 'gone' }]))],
  ['is empty', (place) => writeFileSync(place.config, '')],
  ['is gone', (place) => rmSync(place.config)],
];

test.each(BREAK)(
  'fault 66: a config that %s: commands find the receiver that runs with the old one',
  async (_, change) => {
    const place = await Place.make();
    const env = { MILLRACE_JOURNAL_PATH: place.at('journal') };
    const receiver = await place.start();
    const run = (...args: string[]) => millrace([...args, '--config', place.config], { env });
    expect((await run('status')).stdout).toMatch(/^config +\/.+\.yaml, read at \d{4}-[^;]+Z$/m);
    await receiver.send(1);
    const text = await place.ok('check', '--json');
    change(place, text);
    for (const args of [['status'], ['quarantine', 'list'], ['dead-letters', 'list'], ['console'], ['flush']])
      expect(await run(...args), args.join(' ')).toMatchObject(
        saying(0, /^warning: .+ as it was at \S+Z is in force in process \d+; .*`millrace check` says why$/m),
      );
    expect(await run('status', '--live')).toMatchObject(printing(0, `${receiver.adminUrl} answers`));
    expect(await receiver.reload()).toMatchObject({ msg: expect.stringContaining('reload failed') });
    expect((await run('status')).stdout).toMatch(/^config .+; A LATER VERSION WAS REFUSED: \S/m);
    await receiver.kill('SIGTERM');
    expect((await run('status')).code).toBe(2);
  },
);

test('a reload, check and route warn of a prefix that looks like a documented one, but not when such a type was seen', async () => {
  const place = await Place.make();
  const receiver = await place.start();
  await receiver.send(1, 0, 'labtests.made.up');
  place.edit((config) => (config.routes = [{ match: ['labtests.', 'Daily.', '*'], to: 'archive' }]));
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  expect(receiver.stderr).toContain('did you mean \\"daily.\\"?');
  expect(receiver.stderr).not.toContain('did you mean \\"labtest.\\"?');
  const commands = [['check'], ['route', 'labtests.made.up']];
  for (const args of commands) {
    const { stderr } = await place.run(...args);
    expect(stderr, args[0]).toContain('did you mean "daily."?');
    expect(stderr, args[0]).not.toContain('did you mean "labtest."?');
  }
  // Without a receiver to ask, they warn of both.
  await receiver.stop();
  for (const args of commands)
    expect((await place.run(...args)).stderr, args[0]).toContain('did you mean "labtest."?');
});

describe('commands that need no config', () => {
  const BACKFILL = ['backfill', '--users-file', 'users.txt', '--since', '2026-01-01', '--dry-run'];
  const SERVICE = ['--out', 'history', '--base-url', 'http://127.0.0.1:1'];
  const COMMANDS: readonly (readonly string[])[] = [
    [...BACKFILL, ...SERVICE],
    ['export', 'archive', '--out', 'tables'],
  ];

  async function everyOne(file: string | null, make: (folder: string) => void = () => undefined) {
    const folder = await temporaryFolder();
    writeFileSync(join(folder, 'users.txt'), '00000000-0000-4000-8000-000000001000\n');
    mkdirSync(join(folder, 'archive'));
    make(folder);
    const named = file === null ? {} : { MILLRACE_CONFIG: join(folder, file) };
    const env = { MILLRACE_SERVICE_API_KEY: 'made-up', ...named };
    const all = [];
    for (const args of COMMANDS) all.push(await millrace(args, { env, cwd: folder }));
    return all;
  }
  const refused = (file: string) => COMMANDS.map(() => saying(2, file));

  test('refuse one that MILLRACE_CONFIG names and that cannot be read', async () => {
    expect(await everyOne('gone.yaml')).toMatchObject(refused('gone.yaml: ENOENT'));
    expect(await everyOne('archive')).toMatchObject(refused('archive: EISDIR'));
  });

  test('refuse one at the usual place that is there and cannot be read', async () => {
    const place = 'config/millrace.yaml';
    const ended = await everyOne(null, (folder) => mkdirSync(join(folder, place), { recursive: true }));
    expect(ended).toMatchObject(refused('config/millrace.yaml: EISDIR'));
  });

  test('do without where there is none', async () => {
    const codes = COMMANDS.map(() => ({ code: 0 }));
    expect(await everyOne(null)).toMatchObject(codes);
    expect(await everyOne(null, (folder) => writeFileSync(join(folder, 'config'), ''))).toMatchObject(codes);
  });
});
