import { createServer } from 'node:net';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { type Ended, millrace, millraceProcess, ROOT, writeConfig } from '../support/millrace.ts';
import { SECRET } from '../support/signed-events.ts';
import { listen } from '../support/listen.ts';

/** How a command ended that could not do its work, and which of `said` it did not say. */
function refusal(args: readonly string[], ...said: readonly string[]): Promise<object> {
  return ending(millrace(args), said);
}

async function ending(ended: Promise<Ended>, said: readonly string[]): Promise<object> {
  const { code, stdout, stderr } = await ended;
  const unsaid = said.filter((text) => !stderr.includes(text)).map((text) => `${text} in: ${stderr}`);
  return { code, stdout, unsaid, stack: /^\s+at /m.test(stderr) };
}

/** Refused as it should be: all said in a line or two on stderr, without a stack. */
function refused(code: number): object {
  return { code, stdout: '', unsaid: [], stack: false };
}

describe('a start that cannot be', () => {
  test('an unknown key: 2, with the place and the key that was meant', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'millrace.yaml');
    writeFileSync(file, 'server: { prot: 8080 }\nsigning: { secrets: [x] }\n');
    for (const command of ['serve', 'check']) {
      const ended = millraceProcess([command, '--config', file]);
      expect(await ending(ended, [`${file}:1:17`, 'server.prot', 'port'])).toEqual(refused(2));
    }
  });

  test('a file that is not YAML, or not there: 2, with its name', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'millrace.yaml');
    expect(await refusal(['serve', '--config', file], 'Config file cannot be read', file)).toEqual(
      refused(2),
    );
    writeFileSync(file, 'server: [\n');
    expect(await refusal(['serve', '--config', file], file)).toEqual(refused(2));
  });

  test('a route to a sink that is not there, and an option no sink has: 2, both named', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, { routes: [{ match: '*', to: ['elsewhere'] }] });
    expect(await refusal(['serve', '--config', config], 'routes', 'elsewhere')).toEqual(refused(2));
    const options = { type: 'files', path: join(folder, 'archive'), rotate: { bytes: 'many' } };
    const other = writeConfig(folder, { sinks: { archive: options } });
    expect(
      await refusal(
        ['serve', '--config', other],
        `${other}:25:18`,
        'sinks.archive.rotate.bytes',
        'must be a size',
      ),
    ).toEqual(refused(2));
  });

  test('no secret, an unset variable, a secret that is none: 2, naming it', async () => {
    const folder = await temporaryFolder();
    const none = writeConfig(folder, { signing: {} });
    expect(await refusal(['serve', '--config', none], 'No signing secret', 'signing.secrets')).toEqual(
      refused(2),
    );
    const unset = writeConfig(folder, { signing: { secrets: ['${NO_SUCH_SECRET}'] } });
    expect(await refusal(['serve', '--config', unset], 'No signing secret', 'NO_SUCH_SECRET')).toEqual(
      refused(2),
    );
    const wrong = writeConfig(folder, { signing: { secrets: ['whsec_not base64!'] } });
    expect(await refusal(['serve', '--config', wrong], 'signing.secrets[0]')).toEqual(refused(2));
    expect((await millrace(['serve', '--config', wrong])).stderr).not.toContain('not base64!');
  });

  test('a port in use, of either listener: 1, with the address', async () => {
    const other = createServer();
    onTestFinished(() => void other.close());
    const port = await listen(other);
    const folder = await temporaryFolder();
    for (const listener of ['server', 'admin']) {
      const config = writeConfig(folder, { [listener]: { host: '127.0.0.1', port } });
      const ended = millraceProcess(['serve', '--config', config]);
      expect(await ending(ended, [`127.0.0.1:${port}`, 'EADDRINUSE'])).toEqual(refused(1));
      // Nothing stays locked behind a start that failed, not even in the process that tried.
      for (let n = 0; n < 2; n += 1)
        expect(await refusal(['serve', '--config', config], `127.0.0.1:${port}`)).toEqual(refused(1));
    }
    expect((await millrace(['status', '--config', writeConfig(folder)])).code).toBe(0);
  });

  // Permission bits do not bind root; the way below a plain file is closed to everybody.
  test('a journal or an archive that cannot be written: 1, naming the folder', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const below = join(file, 'below');
    const journal = writeConfig(folder, { journal: { path: below } });
    expect(await refusal(['serve', '--config', journal], 'Folder cannot be written', below)).toEqual(
      refused(1),
    );
    const archive = writeConfig(folder, { sinks: { archive: { type: 'files', path: below } } });
    expect(await refusal(['serve', '--config', archive], 'Folder cannot be written', below)).toEqual(
      refused(1),
    );
  });

  test('a journal that is not one: 1, naming the file', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder);
    const file = join(folder, 'journal', 'journal.db');
    mkdirSync(join(folder, 'journal'));
    writeFileSync(file, 'This is no database. '.repeat(1000));
    expect(await refusal(['serve', '--config', config], 'Journal cannot be opened', file)).toEqual(
      refused(1),
    );
  });

  test('a sink module that is not there, or is none: 2, naming it', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, { sinks: { own: { type: './own.js' } } });
    expect(await refusal(['serve', '--config', config], 'sinks.own.type', join(folder, 'own.js'))).toEqual(
      refused(2),
    );
    writeFileSync(join(folder, 'own.js'), 'export const nothing = 1;');
    expect(await refusal(['serve', '--config', config], 'parseOptions')).toEqual(refused(2));
  });

  test('a journal that is not there is not made by a command that looks', async () => {
    const config = writeConfig(await temporaryFolder());
    for (const args of [['status'], ['quarantine', 'list'], ['dead-letters', 'list']]) {
      expect(await refusal([...args, '--config', config], 'No journal found')).toEqual(refused(1));
    }
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
  const folder = await temporaryFolder();
  const env = { MILLRACE_CONFIG: writeConfig(folder), MILLRACE_SECRET: SECRET };
  const ended = await Promise.all(wrong.map((args) => millrace(args, { env })));
  for (const [index, result] of ended.entries()) {
    expect({ args: wrong[index], code: result.code }, `stderr: ${result.stderr}`).toEqual({
      args: wrong[index],
      code: 2,
    });
    expect(result.stdout).toBe('');
  }
});

/** Names of the commands below one, as its help lists them. */
function commandsIn(help: string): string[] {
  const groups = help.matchAll(/^(?:Run|Inspect|History|Data|Develop|Commands):\n((?: {2}.*\n)+)/gm);
  const lines = Array.from(groups, ([, list]) => list).join('');
  const names = [...lines.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => String(name));
  return names.filter((name) => name !== 'help');
}

test('--help of every command gives examples and exits with 0; so does --version', async () => {
  const seen: string[] = [];
  const look = async (...path: readonly string[]): Promise<void> => {
    const { code, stdout, stderr } = await millrace([...path, '--help']);
    expect({ path, code, stderr }).toEqual({ path, code: 0, stderr: '' });
    expect(stdout, `millrace ${path.join(' ')}`).toContain(
      path.length === 0 ? 'Start here:\n' : 'Examples:\n',
    );
    seen.push(path.join(' '));
    await Promise.all(commandsIn(stdout).map((name) => look(...path, name)));
  };
  await look();
  expect(seen).toEqual(
    expect.arrayContaining([
      'serve',
      'demo',
      'status',
      'pull',
      'schema',
      'archive verify',
      'quarantine retry',
    ]),
  );
  expect(await millraceProcess(['serve', '--help'])).toMatchObject({ code: 0, stderr: '' });
  expect(await millraceProcess(['no-such-command'])).toMatchObject({ code: 2, stdout: '' });
  expect(await millraceProcess(['--version'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+/),
  });
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

test('the shipped configs are taken as they are', async () => {
  const env = { MILLRACE_SECRET: SECRET };
  const { code, stderr } = await millraceProcess(['check'], { cwd: ROOT, env });
  expect({ code }, `stderr: ${stderr}`).toEqual({ code: 0 });
});
