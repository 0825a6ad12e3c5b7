import { spawn, type ChildProcess } from 'node:child_process';
import { until } from './until.ts';
import { endChild, isRunning, listens } from './child-server.ts';

export interface Server {
  /** `http://127.0.0.1:port`; of others what those who launch them say */
  readonly url: string;
  stop(): Promise<void>;
}

/** Programs that serve all files of a run, each with buckets or topics of its own: their start takes longer than most tests. */
export type SharedServer = 'moto' | 'azurite' | 'fake-gcs' | 'kafka' | 'package';

/** The run's own one; outside of a run, such as in a bench, one for the caller alone. */
export async function shared(name: SharedServer, launch: () => Promise<Server>): Promise<Server> {
  const desk = process.env['MILLRACE_TEST_SERVERS'];
  if (desk === undefined) return launch();
  const answer = await fetch(`${desk}/${name}`);
  const url = await answer.text();
  if (!answer.ok) throw new Error(url);
  return { url, stop: () => Promise.resolve() };
}

/** Starts a program that listens on `port` of this machine, and waits until it does. */
export async function startServer(
  name: string,
  program: string,
  args: readonly string[],
  port: number,
): Promise<Server & { readonly child: ChildProcess }> {
  const child = spawn(program, args, { stdio: 'ignore' });
  // A test process that is ended before its time must not leave it behind.
  process.once('exit', () => child.kill('SIGKILL'));
  // Nor wait for it, when the tests that would stop it were left out.
  child.unref();
  try {
    await until(`${name} to listen`, () => isRunning(name, child) && listens(port));
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return { url: `http://127.0.0.1:${port}`, child, stop: () => endChild(child) };
}
