import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import buildMain from '../support/build.ts';
import { childEnvironment } from '../support/millrace.ts';
import type { BenchContext } from './bench.ts';
import { type Figure, round } from './figures.ts';
import { ratios } from './rounds.ts';

/** What `--main` names, or this tree's program, bundled as the tests' is. */
export async function programOf(main: string, { atEnd }: BenchContext): Promise<string> {
  if (main !== '') return main;
  atEnd(await buildMain());
  return process.env['MILLRACE_TEST_MAIN'] ?? '';
}

/** CPU time that a process and its children have taken so far, all of their threads together, seconds. */
export function cpuSecondsOf(pid: number): number {
  // By the scheduler's clock: what `stat` tells is sampled, and a stretch of seconds is not long enough for that.
  const tasks = `/proc/${pid}/task`;
  let seconds = 0;
  for (const task of readdirSync(tasks)) {
    seconds += Number(read(`${tasks}/${task}/schedstat`).split(' ')[0]) / 1e9;
    for (const child of read(`${tasks}/${task}/children`).split(' '))
      if (child !== '') seconds += cpuSecondsOf(Number(child));
  }
  return seconds;
}

/** CPU time of the thread that a process began with, seconds. */
export function mainThreadSecondsOf(pid: number): number {
  return Number(read(`/proc/${pid}/task/${pid}/schedstat`).split(' ')[0]) / 1e9;
}

/** Bytes that a process has handed to disks so far. */
export function bytesToDiskOf(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(read(`/proc/${pid}/io`))?.[1]);
}

/** Resident memory, MiB. @param field `VmRSS` is what it has now, `VmHWM` the most it had */
export function memoryOf(pid: number, field: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(read(`/proc/${pid}/status`))?.[1]) / 1024;
}

function read(path: string): string {
  return readFileSync(path, 'utf8');
}

const WATCH_EVERY_MS = 200;

/** Resident memory of a process while it is under load; samples of all stretches make one series. */
export class MemoryWatch {
  readonly #pid: () => number;
  readonly samples: number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(pid: () => number) {
    this.#pid = pid;
  }

  start(): void {
    this.samples.push(memoryOf(this.#pid()));
    this.#timer = setInterval(() => this.samples.push(memoryOf(this.#pid())), WATCH_EVERY_MS);
  }

  pause(): void {
    clearInterval(this.#timer);
  }
}

/** One run of a program, from its start to its end. */
export interface Timed {
  readonly seconds: number;
  /** Processor time over all its threads, which says more than the clock on a busy machine. */
  readonly cpuSeconds: number;
  /** The most memory it was resident with, MiB. */
  readonly peakMiB: number;
  /** What it was resident with at each look, MiB. */
  readonly samples: readonly number[];
}

const LOOK_EVERY_MS = 20;
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
  const child = spawn(program, args, { stdio: ['ignore', file.fd, 'pipe'], env: childEnvironment(), signal });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  const samples: number[] = [];
  let [cpuSeconds, peakMiB] = [Number.NaN, Number.NaN];
  // The kernel keeps maximum and sum; only what comes after the last look is missed.
  const watch = setInterval(() => {
    const { pid = 0 } = child;
    try {
      samples.push(memoryOf(pid));
      peakMiB = memoryOf(pid, 'VmHWM') || peakMiB;
      cpuSeconds = ticksOf(pid) / TICKS_PER_SECOND;
    } catch {
      // It has ended.
    }
  }, LOOK_EVERY_MS);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${complaint.trim()}`);
  } finally {
    clearInterval(watch);
  }
  const seconds = (performance.now() - started) / 1000;
  return { seconds, cpuSeconds, peakMiB, samples: samples.filter((mib) => mib > 0) };
}

function ticksOf(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  // Behind the name, which is in brackets: user time is the 12th field, system time the 13th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** For the line of a round. */
export const tellTime = ({ seconds }: Timed): string => `${round(seconds, 2)} s`;

/** What runs of a program took. @param most target of the peak */
export function figuresOfRuns(name: string, runs: readonly Timed[], most?: Figure['wanted']): Figure[] {
  return [
    { name: `${name}: time`, values: runs.map(({ seconds }) => seconds), unit: ' s' },
    { name: `${name}: processor time`, values: runs.map(({ cpuSeconds }) => cpuSeconds), unit: ' s' },
    {
      name: `${name}: peak resident memory`,
      values: [Math.max(...runs.map(({ peakMiB }) => peakMiB))],
      unit: ' MiB',
      digits: 0,
      wanted: most,
    },
  ];
}

/** How many times as fast as another program, by the clock and in processor time. */
export function multiplesOf(
  name: string,
  own: readonly Timed[],
  others: readonly Timed[],
  wanted: Figure['wanted'],
): Figure[] {
  return [
    { name, values: ratios(others, own, ({ seconds }) => seconds), wanted },
    { name: `${name}, in processor time`, values: ratios(others, own, ({ cpuSeconds }) => cpuSeconds) },
  ];
}
