import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { lacksProgram } from '../requirements.ts';

const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'millrace');
const MOTO = '5.2.5';
const FAKE_GCS = '1.56.0';

/** Folders that the stand-ins of S3 and of Google Cloud Storage lie in, once installed: about 370 MB together. */
const MOTO_FOLDER = join(CACHE, `moto-${MOTO}`);
const FAKE_GCS_FOLDER = join(CACHE, `fake-gcs-server-${FAKE_GCS}`);

/** The installed one, or the one that the machine has. */
export const MOTO_PYTHON = orOwn(join(MOTO_FOLDER, 'bin', 'python'), 'python3');
export const FAKE_GCS_SERVER = orOwn(join(FAKE_GCS_FOLDER, 'fake-gcs-server'), 'fake-gcs-server');

function orOwn(installed: string, name: string): string {
  return existsSync(installed) ? installed : name;
}

/** Fetches what is not there, where the means are. What cannot be had is skipped by the tests, by name. */
function install(): void {
  if (!existsSync(MOTO_FOLDER) && lacksProgram('python3') === null)
    fetch(MOTO_FOLDER, [
      ['python3', '-m', 'venv', MOTO_FOLDER],
      [join(MOTO_FOLDER, 'bin', 'pip'), 'install', '--quiet', `moto[server]==${MOTO}`],
    ]);
  if (!existsSync(FAKE_GCS_FOLDER) && lacksProgram('go') === null)
    fetch(FAKE_GCS_FOLDER, [['go', 'install', `github.com/fsouza/fake-gcs-server@v${FAKE_GCS}`]]);
}

/** Milliseconds one step may take. */
const PATIENCE = 300_000;

function fetch(folder: string, steps: readonly (readonly [string, ...string[]])[]): void {
  mkdirSync(folder, { recursive: true });
  for (const [program, ...args] of steps) {
    const env = { ...process.env, GOBIN: folder };
    if (spawnSync(program, args, { env, stdio: 'inherit', timeout: PATIENCE }).status === 0) continue;
    // Half of it would be taken for all of it the next time.
    rmSync(folder, { recursive: true, force: true });
    return;
  }
}

if (import.meta.main) install();
