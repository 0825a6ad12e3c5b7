import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { MillraceError } from '../../core/errors.ts';
import { usageError } from '../io.ts';

export interface Moto {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  stop(): Promise<void>;
}

const WAYS = [['moto_server'], ['python3', '-m', 'moto.server']] as const satisfies readonly (readonly [
  string,
  ...string[],
])[];
/** It finds a free port itself, so that no other program can be faster. */
const ADDRESS = ['-H', '127.0.0.1', '-p', '0'];
const RUNNING = /Running on (http:\/\/127\.0\.0\.1:\d+)/;
/** Milliseconds: Python reads thousands of files first. */
const PATIENCE = 60_000;

/**
 * Starts moto, a stand-in of S3 that keeps its objects in memory, where it is installed.
 * @throws MillraceError usage when it is not
 */
export async function startMoto(signal: AbortSignal): Promise<Moto> {
  let reason = '';
  for (const [program, ...args] of WAYS) {
    // In a group of its own: Ctrl-C must not end it before the receiver has uploaded what it holds.
    const child = spawn(program, [...args, ...ADDRESS], {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    });
    const kill = (): void => void child.kill('SIGKILL');
    process.once('exit', kill);
    const stop = async (): Promise<void> => {
      await ended(child);
      process.off('exit', kill);
    };
    const { url, said } = await outcomeOf(child, AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]));
    if (url !== null) return { url, stop };
    await stop();
    if (signal.aborted) throw new MillraceError('interrupted', 'nothing is kept of an unfinished demo');
    reason = said;
  }
  throw usageError(
    `--store s3 needs moto, a stand-in of S3: pip install 'moto[server]'; or name a store: --store s3://bucket/prefix` +
      ` (${reason})`,
  );
}

/** Its address once it listens, or null and the last that it said. */
async function outcomeOf(
  child: ChildProcess & { readonly stderr: Readable },
  signal: AbortSignal,
): Promise<{ readonly url: string | null; readonly said: string }> {
  const { promise, resolve } = Promise.withResolvers<{ url: string | null; said: string }>();
  let said = '';
  const fail = (): void => resolve({ url: null, said: said.trim().split('\n').at(-1) ?? '' });
  child.once('error', (error) => resolve({ url: null, said: error.message }));
  child.once('close', fail);
  signal.addEventListener('abort', fail, { once: true });
  // Read to the end: each request is a line there, and a full pipe would stop it.
  child.stderr.on('data', (chunk: Buffer) => {
    if (said.length < 10_000) said += chunk.toString();
    const url = RUNNING.exec(said)?.[1];
    if (url !== undefined) resolve({ url, said });
  });
  const outcome = await promise;
  signal.removeEventListener('abort', fail);
  return outcome;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
