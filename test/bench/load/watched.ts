import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { childEnvironment, MAIN } from '../../support/millrace.ts';
import { median, round } from '../report.ts';

const EVERY_MS = 100;
/** Share of a run in which its buffers and its heap find their size. */
const WARM_UP = 0.25;

/** Resident memory after the warm-up: medians of the first and the last third, and the most. */
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
  const samples: number[] = [];
  const watch = setInterval(() => samples.push(residentOf(child.pid ?? 0)), EVERY_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearInterval(watch);
  if (code !== 0) throw new Error(`millrace ${args[0] ?? ''} ended with ${code}: ${complaint.trim()}`);
  return { seconds: (performance.now() - started) / 1000, memory: memoryOf(samples) };
}

function memoryOf(samples: readonly number[]): Memory {
  const warm = samples.slice(Math.floor(samples.length * WARM_UP)).filter((mib) => mib > 0);
  const third = Math.ceil(warm.length / 3);
  return {
    firstMiB: round(median(warm.slice(0, third)), 1),
    lastMiB: round(median(warm.slice(-third)), 1),
    maxMiB: round(Math.max(...samples), 1),
  };
}

/** MiB; 0 once it has ended. */
function residentOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
