import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { jsonIn } from './parsed.ts';

/** Longest line of output that is kept, in characters. */
const LONGEST = 4 * 1024 * 1024;

/** Runs a command of this program in a process of its own. */
export function ownCommand(args: readonly string[]): ChildProcess {
  const [, main = ''] = process.argv;
  return spawn(process.execPath, [...process.execArgv, main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
}

/** @returns the exit code once the process has ended; null when a signal ended it */
export function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('close', resolve);
  });
}

/** The last line that is not empty, cut to `LONGEST`. */
export async function lastLineOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  let last = '';
  if (stream === null) return last;
  for await (const line of createInterface({ input: stream })) if (line !== '') last = line.slice(0, LONGEST);
  return last;
}

/** Why a command with `--json` has failed. @param line its last line on stderr: a JSON document, or text */
export function reasonIn(line: string): string {
  const { error } = Object(jsonIn(line)) as { error?: { detail?: unknown } };
  const detail = typeof error?.detail === 'string' ? error.detail : line.slice(0, 500);
  return detail === '' ? 'the command was ended' : detail;
}
