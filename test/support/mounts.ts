import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { firstLack, lacksProgram, lacksRoot, lacksWorking, type Lack } from './requirements.ts';

/** Whether file systems can be mounted here: root alone is not enough in most containers. */
export function lacksMount(): Lack {
  return firstLack(
    lacksRoot(),
    lacksProgram('mount'),
    lacksProgram('unshare'),
    lacksWorking('mount', 'unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']),
  );
}

/** A tmpfs of the running test's own, unmounted after it. */
export function mountTmpfs(path: string, size: string): void {
  mkdirSync(path, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]);
  onTestFinished(() => {
    execFileSync('umount', [path]);
  });
}
