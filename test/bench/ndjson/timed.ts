import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { childEnvironment } from '../../support/millrace.ts';

const EVERY_MS = 20;

/** One run of a program, from its start to its end. */
export interface Timed {
  readonly seconds: number;
  /** The most memory it was resident with, MiB; null where the system does not say. */
  readonly peakMiB: number | null;
  /** Processor time over all its threads, which says more than the clock on a busy machine; null likewise. */
  readonly cpuSeconds: number | null;
}

/** `/proc` counts processor time in these, whatever the kernel does itself. */
const TICKS_PER_SECOND = 100;

/**
 * Runs a program with its output in a file.
 * @throws Error when it ends in any other way than well
 */
export async function timed(
  [program, ...args]: readonly [string, ...string[]],
  output: string,
  signal: AbortSignal,
): Promise<Timed> {
  await using file = await open(output, 'w');
  const started = performance.now();
  const child = spawn(program, args, {
    stdio: ['ignore', file.fd, 'pipe'],
    env: childEnvironment(),
    signal,
  });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  const usage = { mib: 0, cpu: 0 };
  // The kernel keeps maximum and sum; only what comes after the last look is missed.
  const watch = setInterval(() => {
    void usageOf(child.pid).then(({ mib, cpu }) => {
      usage.mib = Math.max(usage.mib, mib);
      usage.cpu = Math.max(usage.cpu, cpu);
    });
  }, EVERY_MS);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${complaint.trim()}`);
  } finally {
    clearInterval(watch);
  }
  return {
    seconds: (performance.now() - started) / 1000,
    peakMiB: usage.mib > 0 ? usage.mib : null,
    cpuSeconds: usage.cpu > 0 ? usage.cpu : null,
  };
}

async function usageOf(pid = 0): Promise<{ mib: number; cpu: number }> {
  const read = (name: string): Promise<string> => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '');
  const [status, stat] = await Promise.all([read('status'), read('stat')]);
  const mib = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
  // Behind the name, which is in brackets: user time is the 12th field, system time the 13th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { mib, cpu: (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS_PER_SECOND };
}
