import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { childEnvironment, ROOT } from './millrace.ts';
import type { Server } from './server.ts';

const run = promisify(execFile);

/** Packs the project as `npm pack` does, from a copy, so that the working tree's `dist` is not in the way. @returns the tarball as its URL */
export async function packProject(): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-packed-'));
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
  return {
    url: join(folder, packedName(stdout)),
    stop: () => rm(folder, { recursive: true, force: true }),
  };
}

/** npm prints what the prepack script prints, and then its JSON. */
function packedName(output: string): string {
  const found = /"filename":\s*"([^"]+\.tgz)"/.exec(output)?.[1];
  if (found === undefined) throw new Error(`npm pack named no file:\n${output}`);
  return found;
}
