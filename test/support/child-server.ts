import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { until } from './until.ts';

/** Whether something listens on a port of this machine. */
export async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Ends a child, whether or not it keeps the process, and waits until it has ended. */
export async function endChild(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

/** True while a child runs. @param name for the error when it has ended */
export function isRunning(name: string, child: ChildProcess): boolean {
  if (child.exitCode === null && child.signalCode === null) return true;
  throw new Error(`${name} ended with ${child.exitCode ?? child.signalCode}`);
}

/** Stops a child in its tracks: connections stay, and nothing is answered until a SIGCONT. */
export async function pauseChild(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  const tasks = `/proc/${child.pid}/task`;
  // Without that folder there is no way to know.
  if (!existsSync(tasks)) return;
  const state = (task: string): string => readFileSync(`${tasks}/${task}/stat`, 'utf8');
  // Its threads stop one after the other, and one of them may answer until then.
  await until('every thread to stop', () => readdirSync(tasks).every((task) => /\) T /.test(state(task))));
}
