// Writes npm-shrinkwrap.json: the lock file without packages of development, so that an install gets the versions that were tested.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'millrace-shrinkwrap-'));
try {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ ...manifest, devDependencies: {}, scripts: {} }),
  );
  copyFileSync('package-lock.json', join(folder, 'package-lock.json'));
  const prune = [
    'install',
    '--package-lock-only',
    '--ignore-scripts',
    '--offline',
    '--no-audit',
    '--no-fund',
  ];
  execFileSync('npm', prune, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  copyFileSync(join(folder, 'package-lock.json'), 'npm-shrinkwrap.json');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
