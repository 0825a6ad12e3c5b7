import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { childEnvironment, MAIN } from '../../support/millrace.ts';
import { MemoryWatch } from '../ingest/memory.ts';

/** A start takes about so long: what is resident before says nothing of the work. */
const WARM_UP_MS = 1000;

export interface Memory {
  readonly firstMiB: number;
  readonly lastMiB: number;
  readonly maxMiB: number;
}

/** Runs a command line of millrace to its end, and watches its memory. */
export async function watched(
  args: readonly string[],
  signal: AbortSignal,
): Promise<{ seconds: number; memory: Memory }> {
  const started = performance.now();
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: childEnvironment(),
    signal,
  });
  let complaint = '';
  child.stderr.on('data', (text: Buffer) => (complaint += String(text)));
  const memory = new MemoryWatch(() => residentOf(child.pid ?? 0));
  const warm = setTimeout(() => memory.start(), WARM_UP_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(warm);
  memory.pause();
  if (code !== 0) throw new Error(`millrace ${args[0]} ended with ${code}: ${complaint.trim()}`);
  return { seconds: (performance.now() - started) / 1000, memory: memory.figures() };
}

/** MiB. */
function residentOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}
