import { spawn, type SpawnOptions } from 'node:child_process';
import { createInterface } from 'node:readline';
import { MillraceError } from '../../core/errors.ts';
import { onAbort } from '../../lib/abort.ts';

/** A program that the demo has started; it ends with the demo at the latest. */
export interface Child {
  readonly pid: number;
  /** Resolves to the exit code; to null when a signal ended it, or it could not be started. */
  readonly ended: Promise<number | null>;
  isOver(): boolean;
  /** The last line that it wrote, or why it could not be started. */
  said(): string;
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null>;
}

interface How extends Pick<SpawnOptions, 'cwd' | 'env'> {
  /** Told each line of its output. */
  readonly onLine?: (line: string) => void;
}

export function startChild(program: string, args: readonly string[], { onLine, ...how }: How = {}): Child {
  // In a group of its own: Ctrl-C ends the demo, which ends what it has started in its turn.
  const child = spawn(program, args, { ...how, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  let [said, isOver] = ['', false];
  const { promise: ended, resolve } = Promise.withResolvers<number | null>();
  const end = (code: number | null): void => {
    isOver = true;
    process.off('exit', kill);
    resolve(code);
  };
  // Read to the end: a full pipe would stop it.
  for (const input of [child.stdout, child.stderr])
    createInterface({ input }).on('line', (line) => {
      if (line.trim() !== '') said = line.trim();
      onLine?.(line);
    });
  child.once('error', ({ message }) => {
    said = message;
    end(null);
  });
  child.once('close', end);
  return {
    pid: child.pid ?? 0,
    ended,
    isOver: () => isOver,
    said: () => said,
    end: (signal) => {
      child.kill(signal);
      return ended;
    },
  };
}

/** What is waited for of a child, which is killed when the demo is interrupted meanwhile. @throws MillraceError interrupted */
export async function unlessInterrupted<T>(child: Child, signal: AbortSignal, work: Promise<T>): Promise<T> {
  const forget = onAbort(signal, () => void child.end('SIGKILL'));
  try {
    const found = await work;
    if (!signal.aborted) return found;
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    forget();
  }
  throw unfinished();
}

export function unfinished(): MillraceError {
  return new MillraceError('interrupted', 'nothing is kept of an unfinished demo');
}
