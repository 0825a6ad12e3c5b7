import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { hasColours, type Io } from '../../src/cli/io.ts';
import { wrapHelp } from '../../src/cli/wrap-help.ts';
import { createLog } from '../../src/cli/log.ts';
import { StatusLine } from '../../src/cli/status-line.ts';
import { commandTree } from '../../config/reference/commands.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { program, walk } from './run.ts';

function ioWith(tty: boolean, env: Io['env'] = {}): { io: Io; said: () => string } {
  const stderr = Object.assign(new PassThrough(), { isTTY: tty });
  const io = { stdout: new PassThrough(), stderr, env } as unknown as Io;
  return { io, said: () => String(stderr.read() ?? '') };
}

describe('help', () => {
  test('of every command is at most 80 columns wide, has examples, and loses no word', async () => {
    for (const { path } of walk(commandTree(await program()))) {
      if (path.includes('help')) continue;
      const { code, stdout, stderr } = await millrace([...path, '--help']);
      expect({ path, code, stderr }).toEqual({ path, code: 0, stderr: '' });
      expect(stdout).toContain(`Usage: ${['millrace', ...path].join(' ')}`);
      expect(stdout, path.join(' ')).toContain(path.length === 0 ? 'Start here:\n' : 'Examples:\n');
      for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
    }
  });

  test('breaks sentences at other words, and examples so that a shell still takes them', () => {
    const wide = `Examples:
  millrace send --one 'in quotes, and more' --two                what it does
  millrace send                                                  short

First words of a paragraph that is wide, and
more.
  - an item that is wide as well, and continues
    below
  - short`;
    expect(wrapHelp(wide, 30)).toBe(`Examples:
  # what it does
  millrace send --one \\
    'in quotes, and more' \\
    --two
  # short
  millrace send

First words of a paragraph
that is wide, and more.
  - an item that is wide as
    well, and continues below
  - short`);
    expect(wrapHelp(wide, 200)).toBe(
      wide.replace(' what it does', ' # what it does').replace('  short', '  # short'),
    );
  });
});

describe('a command that fails with --json says so in one JSON document', () => {
  test.each([
    [['status', '--jsn', '--json'], 2, 'usage', "unknown option '--jsn'"],
    [['statuss', '--json'], 2, 'usage', "unknown command 'statuss'"],
    [['keys', 'rotate', '--json'], 2, 'usage', 'required option'],
    [['status', '--json', '--config', '/nowhere/made-up.yaml'], 2, 'config_missing', '/nowhere/made-up.yaml'],
    [['archive', 'verify', '/nowhere', '--json'], 1, 'archive_unreadable', '/nowhere'],
    [['send', '--json', '--count', 'many'], 2, 'usage', '--count many'],
  ])('%j', async (args, exit, code, detail) => {
    const ended = await millrace(args, { env: { MILLRACE_SECRET: 'whsec_bWFkZSB1cA==' } });
    expect(ended).toMatchObject({ code: exit, stdout: '' });
    const { error } = JSON.parse(ended.stderr) as { error: Record<string, unknown> };
    expect(Object.keys(error)).toEqual(['code', 'title', 'detail', 'exit', 'retryable']);
    expect(error).toMatchObject({ code, exit, detail: expect.stringContaining(detail) as string });
  });

  test('a typo in an option of a sink stands with its file, line and the key that is meant', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, {
      sinks: { archive: { type: 'files', path: join(folder, 'archive'), compres: 'gzip' } },
    });
    const { code, stderr } = await millrace(['check', '--json', '--config', config]);
    const { error } = JSON.parse(stderr) as { error: { detail: string } };
    expect(code).toBe(2);
    expect(error.detail).toMatch(
      /millrace\.yaml:\d+:\d+: sinks\.archive\.compres: .*sinks\.archive\.compress\?/,
    );
    const words = await millrace(['check', '--config', config, '--', '--json']);
    expect(words.stderr).not.toContain('"error"');
  });
});

test.each([
  [true, {}, true],
  [false, {}, false],
  [true, { NO_COLOR: '1' }, false],
  [true, { NO_COLOR: '' }, true],
  [true, { TERM: 'dumb' }, false],
  [false, { FORCE_COLOR: '1' }, true],
  [true, { FORCE_COLOR: '0' }, false],
  [false, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
])('colours: on a terminal %s, with %j: %s', (isTTY, env, coloured) => {
  expect(hasColours(Object.assign(new PassThrough(), { isTTY }), env)).toBe(coloured);
});

describe('the log', () => {
  const line = /^[\d:.]{12} {2}info {3}listening {2}sinks=\["archive"\] {2}url=http:\/\/x\n$/;
  const json = /^\{.*"sinks":\["archive"\],.*"msg":"listening"\}\n$/;
  test.each([
    [false, 'auto', json],
    [true, 'auto', line],
    [true, 'json', json],
    [false, 'text', line],
  ] as const)('on a terminal %s, with log.format %s, it is %s', (tty, format, expected) => {
    const { io, said } = ioWith(tty, { NO_COLOR: '1' });
    createLog(io, { level: 'info', format }).info({ sinks: ['archive'], url: 'http://x' }, 'listening');
    expect(said()).toMatch(expected);
  });

  test('one line a message, whatever is in it; an error has its stack below', () => {
    const { io, said } = ioWith(true);
    const log = createLog(io, { level: 'info' });
    log.warn({ id: 'a\u001b[2J\nfake' }, 'quarantined\nand more');
    const [first, ...rest] = said().split('\n');
    expect(rest).toEqual(['']);
    expect(first).toContain('\u001b[33mwarn ');
    expect(first).not.toContain('\u001b[2J');
    log.error({ err: new Error('made up') }, 'failed');
    expect(said()).toMatch(/failed\n {2}Error: made up\n {6}at /);
  });
});

test('a pace is counted from the first look, and says what is left', async () => {
  const { io } = ioWith(true);
  const status = new StatusLine(io);
  expect(status.pace(10, 100, 1000)).toBe('');
  const start = performance.now();
  while (performance.now() - start < 20);
  const [, rate, left] = /^, (\d+)\/s, (\d+)s left$/.exec(status.pace(11, 100, 2000)) ?? [];
  expect(Number(rate)).toBeGreaterThan(100);
  expect(Number(rate)).toBeLessThanOrEqual(50_000);
  expect(Number(left)).toBeGreaterThanOrEqual(2);
  expect(status.pace(100, 100)).toMatch(/\/s$/);
  expect(status.pace(100, null, 3000)).toMatch(/^, [\d.]+\/s$/);
});
