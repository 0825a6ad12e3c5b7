import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { type Ended, millrace, ROOT, writeConfig } from '../support/millrace.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Holds that a command said what is wrong in a line or two, without a stack, and nothing on stdout. */
function expectRefused({ code, stdout, stderr }: Ended, exit: number, ...said: readonly string[]): void {
  expect({ code, stdout }, stderr).toEqual({ code: exit, stdout: '' });
  for (const text of said) expect(stderr).toContain(text);
  expect(stderr).not.toMatch(/^\s+at /m);
}

describe('a start that cannot be', () => {
  test('an unknown key: 2, with the place and the key that was meant', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'millrace.yaml');
    writeFileSync(file, 'server: { prot: 8080 }\nsigning: { secrets: ["whsec_bWFkZS11cCBtYWRlLXVw"] }\n');
    for (const command of ['serve', 'check']) {
      expectRefused(await millrace([command, '--config', file]), 2, `${file}:1:11`, 'server.prot', 'port');
    }
  });

  test('a file that is not YAML, or not there: 2, with its name', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'millrace.yaml');
    expectRefused(await millrace(['serve', '--config', file]), 2, 'Config file cannot be read', file);
    writeFileSync(file, 'server: [\n');
    expectRefused(await millrace(['serve', '--config', file]), 2, file);
  });

  test('a route to a sink that is not there, and an option no sink has: 2, both named', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, { routes: [{ match: '*', to: ['elsewhere'] }] });
    expectRefused(await millrace(['serve', '--config', config]), 2, 'routes', 'elsewhere');
    const options = { type: 'files', path: join(folder, 'archive'), rotate: { bytes: 'many' } };
    const other = writeConfig(folder, { sinks: { archive: options } });
    expectRefused(await millrace(['serve', '--config', other]), 2, 'sinks.archive.rotate.bytes', 'many');
  });

  test('no secret, an unset variable, a secret that is none: 2, naming it', async () => {
    const folder = await temporaryFolder();
    const none = writeConfig(folder, { signing: {} });
    expectRefused(await millrace(['serve', '--config', none]), 2, 'No signing secret', 'signing.secrets');
    const unset = writeConfig(folder, { signing: { secrets: ['${NO_SUCH_SECRET}'] } });
    expectRefused(await millrace(['serve', '--config', unset]), 2, 'No signing secret', 'NO_SUCH_SECRET');
    const wrong = writeConfig(folder, { signing: { secrets: ['whsec_not base64!'] } });
    const refused = await millrace(['serve', '--config', wrong]);
    expectRefused(refused, 2, 'signing.secrets[0]');
    expect(refused.stderr).not.toContain('not base64!');
  });

  test('a port in use, of either listener: 1, with the address', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const folder = await temporaryFolder();
    for (const listener of ['server', 'admin']) {
      const config = writeConfig(folder, { [listener]: { host: '127.0.0.1', port } });
      expectRefused(await millrace(['serve', '--config', config]), 1, `127.0.0.1:${port}`, 'EADDRINUSE');
    }
    // Nothing stays locked behind a start that failed.
    expect((await millrace(['status', '--config', writeConfig(folder)])).code).toBe(0);
  });

  // Permission bits do not bind root; the way below a plain file is closed to everybody.
  test('a journal or an archive that cannot be written: 1, naming the folder', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const below = join(file, 'below');
    const journal = writeConfig(folder, { journal: { path: below } });
    expectRefused(await millrace(['serve', '--config', journal]), 1, 'Folder cannot be written', below);
    const archive = writeConfig(folder, { sinks: { archive: { type: 'files', path: below } } });
    expectRefused(await millrace(['serve', '--config', archive]), 1, 'Folder cannot be written', below);
  });

  test('a journal that is not one: 1, naming the file', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, { journal: { path: folder } });
    writeFileSync(join(folder, 'journal.db'), 'This is no database. '.repeat(1000));
    const refused = await millrace(['serve', '--config', config]);
    expectRefused(refused, 1, 'Journal cannot be opened', join(folder, 'journal.db'));
  });

  test('a sink module that is not there, or is none: 2, naming it', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, { sinks: { own: { type: './own.js' } } });
    expectRefused(await millrace(['serve', '--config', config]), 2, 'sinks.own.type', join(folder, 'own.js'));
    writeFileSync(join(folder, 'own.js'), 'export const nothing = 1;');
    expectRefused(await millrace(['serve', '--config', config]), 2, 'parseOptions');
  });

  test('a journal that is not there is not made by a command that looks', async () => {
    const config = writeConfig(await temporaryFolder());
    for (const args of [['status'], ['quarantine', 'list'], ['dead-letters', 'list']]) {
      expectRefused(await millrace([...args, '--config', config]), 1, 'There is no journal here');
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
  const env = { MILLRACE_CONFIG: writeConfig(folder), MILLRACE_SECRET: 'whsec_bWFkZS11cCBtYWRlLXVw' };
  const ended = await Promise.all(wrong.map((args) => millrace(args, { env, cwd: folder })));
  for (const [index, result] of ended.entries()) {
    expect({ args: wrong[index], code: result.code }, result.stderr).toEqual({ args: wrong[index], code: 2 });
    expect(result.stdout).toBe('');
  }
});

test('--help of every command gives examples and exits with 0; so does --version', async () => {
  const top = await millrace(['--help']);
  expect(top).toMatchObject({ code: 0, stderr: '' });
  const [, list = ''] = top.stdout.split('Commands:\n');
  const names = [...list.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => String(name));
  expect(names).toEqual(expect.arrayContaining(['serve', 'demo', 'check', 'status']));
  for (const name of names.filter((candidate) => candidate !== 'help')) {
    const { code, stdout, stderr } = await millrace([name, '--help']);
    expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: '' });
    // A command of several verbs may have its examples at the verbs.
    const verbs = /\n {2}(verify)\b/.exec(stdout)?.[1];
    const help = verbs === undefined ? stdout : (await millrace([name, verbs, '--help'])).stdout;
    expect(help, name).toContain('Examples:\n');
  }
  expect(await millrace(['--version'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+/) });
});

test('demo: the last line is JSON, the counts add up, exit 0', async () => {
  // From another folder: nothing of it may depend on where it is started.
  const { code, stdout, stderr } = await millrace(['demo', '--events', '200', '--json'], {
    cwd: await temporaryFolder(),
  });
  expect({ code }, stderr).toEqual({ code: 0 });
  expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
    ok: true,
    accepted: 200,
    delivered: 200,
    problems: [],
  });
});

test('the shipped configs are taken as they are', async () => {
  const env = { MILLRACE_SECRET: 'whsec_bWFkZS11cCBtYWRlLXVw' };
  const { code, stderr } = await millrace(['check'], { cwd: ROOT, env });
  expect({ code }, stderr).toEqual({ code: 0 });
});
