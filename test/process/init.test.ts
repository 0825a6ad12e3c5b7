import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { ioOf } from '../cli/run.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, millraceProcess } from '../support/millrace.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';
import { shellPlace } from '../support/shell.ts';
import { saying } from '../support/place.ts';

const lack = firstLack(...['bash', 'curl', 'gunzip'].map(lacksProgram));
const READY =
  'until curl --silent --fail --output /dev/null http://127.0.0.1:9090/readyz; do sleep 0.2; done';

test.skipIf(lack !== null)(
  `the commands that init prints work as printed, and the first event can be read${skipped(lack)}`,
  async () => {
    const { folder, run } = await shellPlace(await temporaryFolder());
    const said = await millraceProcess(['init', '--yes'], { cwd: folder });
    expect(said.code, said.stderr).toBe(0);
    const next = Array.from(said.stdout.matchAll(/^ {2}(.+)$/gm), ([, command = '']) => command);
    expect(next).toEqual(['millrace check', 'millrace serve', 'millrace send']);
    const [check, serve, send] = next;
    const typed = [check, `${serve} 2> millrace.log &\n${READY}`, send];
    const tail = [
      'millrace tail --since 1h --count 1 --json',
      'gunzip -c $(millrace flush)',
      'kill -TERM $! && wait $!',
    ];
    const output = await run([...typed, ...tail].join('\n'));
    const id = /"id":"(msg_[^"]+)","http":202/.exec(output)?.[1];
    const lines = output.split('\n').filter((line) => line.startsWith('{') && line.includes(`"id":"${id}"`));
    // What send, tail and the file say.
    expect(lines).toHaveLength(3);
    expect(lines[2]).toContain('"event":{');
  },
);

const text = (folder: string, file: string): string => readFileSync(join(folder, file), 'utf8');

test('a secret that stands there empty is filled in; one behind a byte order mark stays', async () => {
  for (const [before, wins] of [
    ['MILLRACE_SECRET=\nOTHER=1\n', /^whsec_/],
    ['\uFEFFMILLRACE_SECRET=mine\n', /^mine$/],
  ] as const) {
    const cwd = await temporaryFolder();
    writeFileSync(join(cwd, '.env'), before);
    const done = await millrace(['init', '--yes', '--json'], { cwd });
    expect(done.code, done.stderr).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({ fill_in: [] });
    expect(parseEnv(text(cwd, '.env').replace('\uFEFF', ''))['MILLRACE_SECRET']).toMatch(wins);
  }
});

test('what is there is never replaced without --force, and a secret not even then', async () => {
  const cwd = await temporaryFolder();
  writeFileSync(join(cwd, '.env'), 'OTHER=1');
  writeFileSync(join(cwd, '.gitignore'), 'node_modules/\ndata/');
  const init = (...args: string[]) => millrace(['init', ...args], { cwd });
  expect(await init()).toMatchObject(saying(2, '--yes'));
  expect(existsSync(join(cwd, 'config'))).toBe(false);
  expect((await init('--yes')).code).toBe(0);
  const env = text(cwd, '.env');
  expect(env).toMatch(/^OTHER=1\n# .*\nMILLRACE_SECRET=whsec_[\w+/]{43}=\n$/);
  expect(text(cwd, '.gitignore')).toBe('node_modules/\ndata/\n.env\n');

  writeFileSync(join(cwd, 'config/millrace.yaml'), 'mine');
  const again = await init('--yes', '--sinks', 'http');
  expect(again).toMatchObject(saying(2, 'config/millrace.yaml, compose.yaml: already there'));
  expect([text(cwd, 'config/millrace.yaml'), text(cwd, '.env')]).toEqual(['mine', env]);
  const chosen = ['--sinks', 'files,http', '--routes', 'labtest.=services', '--run', 'systemd'];
  const forced = await init(...chosen, '--force', '--json');
  expect(JSON.parse(forced.stdout)).toEqual({
    files: ['config/millrace.yaml', 'millrace.service', '.env', '.gitignore'],
    fill_in: ['SERVICES_URL'],
    next: ['millrace check', 'millrace serve', 'millrace send'],
  });
  expect(text(cwd, '.env').startsWith(env)).toBe(true);
  expect(text(cwd, '.env').match(/^MILLRACE_SECRET=/gm)).toHaveLength(1);
  const unit = text(cwd, 'millrace.service');
  expect(unit).toContain(`WorkingDirectory=${cwd}\n`);
  // The variables of a unit would win over a changed .env at a reload.
  expect(unit).not.toContain('EnvironmentFile');
  expect(unit).toContain('RestartPreventExitStatus=2 4\n');

  const fresh = await temporaryFolder();
  expect((await millrace(['init', '--yes'], { cwd: fresh })).code).toBe(0);
  expect((statSync(join(fresh, '.env')).mode & 0o777).toString(8)).toBe('600');
});

test('every sink can be chosen, what is wrong is named, and the config is valid once it is filled in', async () => {
  const cwd = await temporaryFolder();
  const init = (...args: string[]) => millrace(['init', '--force', ...args], { cwd });
  for (const [args, said] of [
    [['--sinks', 'file'], 'file is none of files, event-hubs, pubsub, http'],
    [['--sinks', 'files', '--routes', 'a.'], '--routes a.: must be TYPES=SINKS'],
    [['--sinks', 'files', '--routes', 'a.=hubs'], 'hubs is none of this config'],
  ] as const)
    expect(await init(...args)).toMatchObject(saying(2, said));
  const rules = ['--routes', 'labtest.,lab_report.=hubs:labs,services', 'daily.=topics'];
  expect((await init('--sinks', 'files,event-hubs,pubsub,http', ...rules)).code).toBe(0);
  const env = {
    MILLRACE_SECRET: `whsec_${Buffer.alloc(24, 7).toString('base64')}`,
    SERVICES_SECRET: `whsec_${Buffer.alloc(24, 8).toString('base64')}`,
    SERVICES_URL: 'https://hooks.example.com/health',
    PUBSUB_PROJECT: 'acme-health',
    EVENT_HUBS: 'Endpoint=sb://made.up;SharedAccessKeyName=a;SharedAccessKey=b',
  };
  const checked = await millrace(['check'], { cwd, env });
  expect([checked.code, checked.stderr]).toEqual([0, '']);
  const table = checked.stdout.slice(checked.stdout.indexOf('ROUTE'));
  expect(table).toMatch(
    /labtest\..*hubs +labs[^]*daily\. +topics[^]*\* +archive[^]*hubs[^]*topics[^]*services/,
  );
});

test('the key that signs archives can lie elsewhere, and whatever runs millrace may write it there', async () => {
  const [cwd, other] = [await temporaryFolder(), await temporaryFolder()];
  const key = join(other, 'manifest.key');
  for (const run of ['compose', 'systemd'])
    expect((await millrace(['init', '--yes', '--force', '--run', run, '--key', key], { cwd })).code).toBe(0);
  for (const mount of [`- '${other}:${other}'`, '- ./config:/etc/millrace:ro'])
    expect(text(cwd, 'compose.yaml')).toContain(mount);
  expect(text(cwd, 'millrace.service')).toContain(`ReadWritePaths="${cwd}" "${other}"`);
  const env = parseEnv(text(cwd, '.env')) as Record<string, string>;
  expect((await millrace(['check'], { cwd, env })).code).toBe(0);
  const shown = await millrace(['keys', 'public', '--config', 'config/millrace.yaml'], { cwd, env });
  expect(shown.stdout + shown.stderr).toContain(key);
});

/** Answers each question, as somebody at a terminal does; after the last one the input ends. */
async function answered(cwd: string, answers: string[]): Promise<{ code: number; said: string }> {
  let code = 0;
  let said = '';
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stderr = new PassThrough().on('data', (chunk: Buffer) => {
    said += String(chunk);
    if (!said.endsWith('] ')) return;
    const answer = answers.shift();
    if (answer === undefined) stdin.end();
    else stdin.write(`${answer}\n`);
  });
  const io = ioOf({ stderr, stdin, setExit: (exit) => (code = exit) });
  await runProgram(io, ['init', '--folder', cwd]);
  return { code, said };
}

test('on a terminal it asks, and asks again; without all answers nothing is written', async () => {
  const cwd = await temporaryFolder();
  const broken = await answered(cwd, ['files']);
  expect(broken).toMatchObject({ code: 2, said: expect.stringContaining('nothing was written') });
  expect(existsSync(join(cwd, 'config'))).toBe(false);
  const done = await answered(cwd, ['ftp', 'files,http', 'labtest.=services', 'none']);
  expect(done).toMatchObject({ code: 0, said: expect.stringContaining('ftp is none of files') });
  expect(existsSync(join(cwd, 'compose.yaml'))).toBe(false);
  expect(text(cwd, 'config/millrace.yaml')).toContain("- match: ['labtest.']\n    to: ['services']");
});
