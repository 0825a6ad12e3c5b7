import { execFile } from 'node:child_process';

/** Runs a script of the tests to its end. @returns the signal that ended it, and what it wrote to stderr */
export function runToItsEnd(
  script: string,
  ...args: readonly string[]
): Promise<[signal: string | null, stderr: string]> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [script, ...args], (_error, _stdout, stderr) =>
      resolve([child.signalCode, stderr]),
    );
  });
}

/** What such a script does at each step: it kills its process at the nth of this name. */
export function killAt(step: string, occurrence: string): (now: string) => void {
  let left = Number(occurrence);
  return (now) => {
    if (now === step && (left -= 1) === 0) process.kill(process.pid, 'SIGKILL');
  };
}
