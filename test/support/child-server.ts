import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

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
