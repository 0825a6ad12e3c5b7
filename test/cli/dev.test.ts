import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CommandProcess } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { until } from '../support/until.ts';

/** `millrace dev` on free ports, until it has said all it says. */
async function startDev(folder: string, ...args: readonly string[]): Promise<CommandProcess> {
  const ports = ['--port', '0', '--admin-port', '0', '--service-port', '0'];
  const dev = new CommandProcess(['dev', '--folder', folder, ...ports, ...args]);
  await until('what dev prints', () => {
    if (dev.child.exitCode !== null) throw new Error(`dev ended: ${dev.stderr}`);
    return dev.stdout.includes('\n');
  });
  return dev;
}

test('the stand-in’s events arrive in the archive, other commands can look, Ctrl-C ends it well', async () => {
  const folder = await temporaryFolder();
  const dev = await startDev(folder, '--every', '20ms', '--users', '3', '--json');
  const shown = JSON.parse(dev.stdout) as Record<string, string>;
  const status = async (): Promise<{ journal: { events: number } }> =>
    JSON.parse((await millrace(['status', '--config', shown['config'] ?? '', '--json'])).stdout);
  await until('three events', async () => (await status()).journal.events >= 3);
  const meals = `${shown['service']}/v2/summary/meal/${shown['user_id']}?start_date=2026-01-01`;
  expect((await fetch(meals, { headers: { 'x-service-api-key': shown['api_key'] ?? '' } })).status).toBe(200);
  expect(await dev.kill('SIGINT')).toBe(0);
  const verified = await millrace(['archive', 'verify', shown['archive'] ?? '', '--json']);
  expect({ code: verified.code }, verified.stderr).toEqual({ code: 0 });
  expect(JSON.parse(verified.stdout).records).toBeGreaterThanOrEqual(3);
});

const lack = lacksProgram('curl') ?? lacksProgram('bash');

test.skipIf(lack !== null)(`the request it prints is taken${skipped(lack)}`, async () => {
  const dev = await startDev(join(await temporaryFolder(), "it's here"), '--every', '0');
  const [, command = ''] = /\n\n( {2}curl -i [^]*?)\n\n/.exec(dev.stdout) ?? [];
  const { stdout } = spawnSync('bash', ['-c', command], { encoding: 'utf8', timeout: 120_000 });
  expect(stdout).toContain('202 Accepted');
  expect(await dev.kill('SIGINT')).toBe(0);
});

test('options that cannot be are named', async () => {
  for (const args of [
    ['--port', '70000'],
    ['--every', 'soon'],
    ['--users', '-1'],
  ]) {
    const { code, stderr } = await millrace(['dev', ...args]);
    expect({ code, named: stderr.includes(args[0] ?? '') }).toEqual({ code: 2, named: true });
  }
});
