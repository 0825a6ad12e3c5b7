import { MAIN } from './millrace.ts';
import { firstLack, type Lack, lacksProgram, lacksWorking } from './requirements.ts';

export function lacksStrace(): Lack {
  return firstLack(
    lacksProgram('strace'),
    lacksWorking('strace', 'strace', ['-D', '-o', '/dev/null', 'true']),
  );
}

/**
 * A receiver whose fsync and fdatasync do something else.
 * @param fault as strace takes it: `error=EIO:when=20+`; counted for each thread
 * @param path only those of this file
 * @param calls others than these two
 */
export function underStrace(
  fault: string,
  path?: string,
  calls = 'fsync,fdatasync',
): readonly [string, ...string[]] {
  const only = path === undefined ? [] : ['-P', path];
  const inject = ['-e', `trace=${calls}`, '-e', `inject=${calls}:${fault}`];
  // With -D the receiver is our child, and strace watches from aside.
  return ['strace', '-D', '-f', '-qq', '-o', '/dev/null', ...only, ...inject, process.execPath, MAIN];
}

/** The same of a process that runs. */
export function straceOn(
  pid: number,
  fault: string,
  path: string,
  calls: string,
): readonly [string, ...string[]] {
  const inject = ['-P', path, '-e', `trace=${calls}`, '-e', `inject=${calls}:${fault}`];
  return ['strace', '-f', '-qq', '-o', '/dev/null', ...inject, '-p', String(pid)];
}
