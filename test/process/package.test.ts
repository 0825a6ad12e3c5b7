import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test, vi } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { childEnvironment, millrace, ROOT, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';

vi.setConfig({ testTimeout: 120_000 });

const run = promisify(execFile);

/**
 * Packs the project and lays the package out as an install does, with this checkout's own dependencies: the registry
 * takes no part in it. Packed from a copy, so that nobody's `dist` is in the way.
 * @returns the installed package's main file
 */
async function installPacked(folder: string): Promise<string> {
  const copy = join(folder, 'copy');
  await mkdir(copy);
  for (const name of await readdir(ROOT)) {
    if (['.git', 'node_modules', 'dist', 'data', 'test'].includes(name)) continue;
    await cp(join(ROOT, name), join(copy, name), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: copy,
    env: childEnvironment({ npm_config_offline: 'true', npm_config_update_notifier: 'false' }),
  });
  const modules = join(folder, 'installed', 'node_modules');
  await mkdir(modules, { recursive: true });
  await run('tar', ['-xzf', join(folder, packedName(stdout)), '-C', modules]);
  await run('mv', [join(modules, 'package'), join(modules, 'millrace')]);
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (!name.startsWith('.')) await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  return join(modules, 'millrace', 'dist', 'main.js');
}

/** npm prints what the prepack script prints, and then its JSON. */
function packedName(output: string): string {
  const found = /"filename":\s*"([^"]+\.tgz)"/.exec(output)?.[1];
  if (found === undefined) throw new Error(`npm pack named no file:\n${output}`);
  return found;
}

const lack = lacksProgram('npm') ?? lacksProgram('tar');

test.skipIf(lack !== null)(
  `the packed package runs: --help, demo, serve${skipped(lack)}`,
  { timeout: 300_000 },
  async () => {
    const folder = await temporaryFolder();
    const main = await installPacked(folder);
    const program = [process.execPath, main] as const;
    const help = await millrace(['--help'], { program, cwd: folder });
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: millrace') });
    const demo = await millrace(['demo', '--events', '50', '--json'], {
      program,
      cwd: folder,
      env: { TMPDIR: folder },
    });
    expect({ code: demo.code }, `stderr: ${demo.stderr}`).toEqual({ code: 0 });
    expect(JSON.parse(demo.stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
      ok: true,
      accepted: 50,
    });

    const receiver = await ReceiverProcess.start(writeConfig(folder), { program, cwd: folder });
    expect((await postSigned(receiver.url)).status).toBe(202);
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  },
);
