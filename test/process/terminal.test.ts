import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { childEnvironment, MAIN, writeConfig } from '../support/millrace.ts';
import { lacksWorking, skipped } from '../support/requirements.ts';
import { until } from '../support/until.ts';

const lack = lacksWorking('script of util-linux', 'script', ['-qec', 'true', '/dev/null']);

test.skipIf(lack !== null).each([
  ['in colours', {}, '\u001b[32minfo '],
  ['without them by NO_COLOR', { NO_COLOR: '1' }, 'info   listening  url=http://'],
])(`the log of serve is readable on a terminal, %s${skipped(lack)}`, async (_name, env, wanted) => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const command = `'${process.execPath}' '${MAIN}' serve --config '${config}'`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: childEnvironment({ TERM: 'xterm', ...env }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(() => void child.kill('SIGKILL'));
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  await until('the line', () => shown.includes('listening'));
  expect(shown).toContain(wanted);
  expect(shown).not.toContain('{"level"');
  expect(shown.includes('\u001b')).toBe(wanted.includes('\u001b'));
  const { pid } = JSON.parse(readFileSync(join(folder, 'journal/owner.json'), 'utf8')) as { pid: number };
  process.kill(pid, 'SIGTERM');
  expect(await ended).toBe(0);
});
