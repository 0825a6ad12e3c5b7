import { readdirSync, readFileSync } from 'node:fs';

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

/** Bytes that a process has handed to disks so far. */
export function bytesToDiskOf(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(read(`/proc/${pid}/io`))?.[1]);
}

function read(path: string): string {
  return readFileSync(path, 'utf8');
}
