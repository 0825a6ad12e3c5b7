import { createServer } from 'node:net';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { listen } from '../support/listen.ts';
import { type Ended, millrace, millraceProcess } from '../support/millrace.ts';
import { Place, printing } from '../support/place.ts';
import { SECRET } from '../support/signed-events.ts';

/** How a command ended that could not do its work, and which of `said` it did not say. */
async function refusal(ended: Promise<Ended>, ...said: readonly string[]): Promise<object> {
  const { stdout, stderr, code } = await ended;
  const unsaid = said.filter((text) => !stderr.includes(text)).map((text) => `${text} in: ${stderr}`);
  return { code, stdout, unsaid, stack: /^\s+at /m.test(stderr) };
}

/** Refused as it should be: all said in a line or two on stderr, without a stack. */
const refused = (code: number): object => ({ code, stdout: '', unsaid: [], stack: false });

const UNWRITABLE = ['Folder cannot be read or written', 'below'];
const files = (path: string, more: object = {}): object => ({
  sinks: { archive: { type: 'files', path, ...more } },
});

describe('a start that cannot be', () => {
  // Permission bits do not bind root; the way below a plain file is closed to everybody.
  test.each<[what: string, code: number, said: readonly string[], changes: (folder: string) => object]>([
    [
      'a route to a sink that is not there',
      2,
      ['routes', 'elsewhere'],
      () => ({ routes: [{ match: '*', to: ['elsewhere'] }] }),
    ],
    [
      'an option no sink has',
      2,
      ['millrace.yaml:25:18', 'sinks.archive.rotate.bytes', 'must be a size'],
      (folder) => files(`${folder}/archive`, { rotate: { bytes: 'many' } }),
    ],
    ['no secret', 2, ['No signing secret', 'signing.secrets'], () => ({ signing: {} })],
    [
      'an unset variable',
      2,
      ['No signing secret', 'NO_SUCH_SECRET'],
      () => ({ signing: { secrets: ['${NO_SUCH_SECRET}'] } }),
    ],
    ['a journal in no folder', 1, UNWRITABLE, (at) => ({ journal: { path: `${at}/a-file/below` } })],
    ['an archive in no folder', 1, UNWRITABLE, (at) => files(`${at}/a-file/below`)],
    ['a journal that is not one', 1, ['Journal cannot be opened', 'journal.db'], () => ({})],
    [
      'a sink module that is not there',
      2,
      ['sinks.own.type', 'gone.js'],
      () => ({ sinks: { own: { type: './gone.js' } } }),
    ],
    ['a sink module that is none', 2, ['parseOptions'], () => ({ sinks: { own: { type: './own.js' } } })],
  ])('%s: %i, naming it', async (what, code, said, changes) => {
    const place = await Place.make(changes);
    writeFileSync(place.at('a-file'), '');
    writeFileSync(place.at('own.js'), 'export const nothing = 1;');
    if (what === 'a journal that is not one') {
      mkdirSync(place.at('journal'));
      writeFileSync(place.at('journal', 'journal.db'), 'This is no database. '.repeat(1000));
    }
    expect(await refusal(place.run('serve'), ...said)).toEqual(refused(code));
  });

  test('an unknown key, a file that is not YAML, or not there: 2, with its name, the place and the key that was meant', async () => {
    const file = join(await temporaryFolder(), 'millrace.yaml');
    expect(await refusal(millrace(['serve', '--config', file]), 'Config file cannot be read', file)).toEqual(
      refused(2),
    );
    writeFileSync(file, 'server: [\n');
    expect(await refusal(millrace(['serve', '--config', file]), file)).toEqual(refused(2));
    writeFileSync(file, 'server: { prot: 8080 }\nsigning: { secrets: [x] }\n');
    for (const command of ['serve', 'check'])
      expect(
        await refusal(millraceProcess([command, '--config', file]), `${file}:1:17`, 'server.prot', 'port'),
      ).toEqual(refused(2));
  });

  test('a secret that is none: 2, naming its place and not the secret', async () => {
    const place = await Place.make({ signing: { secrets: ['whsec_not base64!'] } });
    expect(await refusal(place.run('serve'), 'signing.secrets[0]')).toEqual(refused(2));
    expect((await place.run('serve')).stderr).not.toContain('not base64!');
  });

  test('a port in use, of either listener: 1, with the address', async () => {
    const other = createServer();
    onTestFinished(() => void other.close());
    const port = await listen(other);
    const place = await Place.make();
    for (const listener of ['server', 'admin']) {
      place.write({ [listener]: { host: '127.0.0.1', port } });
      const said = [`127.0.0.1:${port}`, 'EADDRINUSE'];
      expect(await refusal(millraceProcess(['serve', '--config', place.config]), ...said)).toEqual(
        refused(1),
      );
      // Nothing stays locked behind a start that failed, not even in the process that tried.
      for (let n = 0; n < 2; n += 1) expect(await refusal(place.run('serve'), ...said)).toEqual(refused(1));
    }
    place.write({});
    await place.ok('status');
  });

  test('a journal that is not there is not made by a command that looks', async () => {
    const place = await Place.make();
    for (const args of [['status'], ['quarantine', 'list'], ['dead-letters', 'list']])
      expect(await refusal(place.run(...args), 'No journal found')).toEqual(refused(1));
  });
});

test('wrong usage of any command is 2', async () => {
  const wrong = [
    ['no-such-command'],
    ['serve', '--no-such-option'],
    ['serve', 'stray'],
    ['check', '--config'],
    ['demo', '--events', 'many'],
    ['demo', '--events', '0'],
    ['route'],
    ['send', '--count', '-1'],
    ['send', '--url', 'nowhere', '--count', '1'],
    ['quarantine', 'retry'],
    ['quarantine', 'show', 'x'],
    ['quarantine', 'list', '--limit', 'x'],
    ['dead-letters', 'drop'],
    ['archive'],
    ['archive', 'verify'],
  ];
  const env = { MILLRACE_CONFIG: (await Place.make()).config, MILLRACE_SECRET: SECRET };
  const ended = await Promise.all(
    wrong.map(async (args) => {
      const { code, stdout } = await millrace(args, { env });
      return { args, code, stdout };
    }),
  );
  expect(ended).toEqual(wrong.map((args) => ({ args, code: 2, stdout: '' })));
});

test('the program itself: --help, --version, and a command that is not there', async () => {
  expect(await millraceProcess(['serve', '--help'])).toMatchObject({ code: 0, stderr: '' });
  expect(await millraceProcess(['no-such-command'])).toMatchObject({ code: 2, stdout: '' });
  expect(await millraceProcess(['--version'])).toMatchObject(printing(0, /^\d+\.\d+/));
});

test('demo: the last line is JSON, the counts add up, exit 0, and nothing lies where it was started', async () => {
  // From another folder: nothing of it may depend on where it is started.
  const cwd = await temporaryFolder();
  const { code, stdout, stderr } = await millraceProcess(['demo', '--events', '200', '--json'], {
    cwd,
    env: { TMPDIR: await temporaryFolder() },
  });
  expect(readdirSync(cwd)).toEqual([]);
  expect({ code }, `stderr: ${stderr}`).toEqual({ code: 0 });
  expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
    ok: true,
    accepted: 200,
    delivered: 200,
    problems: [],
  });
});
