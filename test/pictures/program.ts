import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { freePort } from '../support/free-port.ts';

export interface Places {
  /** The program's source. */
  readonly main: string;
  /** For what is made on the way. */
  readonly folder: string;
  /** Where pictures lie. */
  readonly docs: string;
}

export interface Serving {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  shown(): string;
}

/** Milliseconds that a command, a start or an end may take, on a machine that has much else to do. */
const LONGEST = 90_000;

/** Where a program listens: ports that are free. */
export interface Ports {
  readonly server: number;
  readonly admin: number;
}

export async function freePorts(): Promise<Ports> {
  return { server: await freePort(), admin: await freePort() };
}

/** Columns of the terminal that commands run in. */
export const COLUMNS = 112;

/** Runs a command in a folder, in a terminal of its own, to its end. @returns what it printed */
export async function run(main: string, folder: string, args: readonly string[]): Promise<string> {
  const [program, line] = inTerminal(main, args);
  const options = { ...settings(folder), timeout: LONGEST, killSignal: 'SIGKILL' } as const;
  try {
    return (await promisify(execFile)(program, line, options)).stdout;
  } catch (error) {
    const { killed = false, stdout = '' } = error as { killed?: boolean; stdout?: string };
    const how = killed ? `did not end within ${LONGEST / 1000} s` : 'failed';
    throw new Error(`millrace ${args.join(' ')} ${how}:\n${stdout}`, { cause: error });
  }
}

/** Starts `millrace serve` in a folder that has a config, and waits until it listens. */
export async function serve(main: string, folder: string): Promise<Serving> {
  const [program, line] = inTerminal(main, ['serve']);
  const child = spawn(program, line, { ...settings(folder), stdio: ['pipe', 'pipe', 'inherit'] });
  let shown = '';
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = setTimeout(() => {
    child.kill('SIGKILL');
    reject(new Error(`serve does not listen after ${LONGEST / 1000} s:\n${shown}`));
  }, LONGEST);
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    if (shown.includes('listening')) resolve();
  });
  child.once('exit', () => reject(new Error(`serve ended:\n${shown}`)));
  try {
    await promise;
  } finally {
    clearTimeout(late);
  }
  return { child, shown: () => shown };
}

/** Ctrl-C, as a person ends it; with force when that takes too long. */
export async function stop({ child }: Serving): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const late = setTimeout(() => child.kill('SIGKILL'), LONGEST);
  child.stdin?.write('\u0003');
  await ended;
  clearTimeout(late);
}

function inTerminal(main: string, args: readonly string[]): [program: string, args: string[]] {
  const command = [process.execPath, main, ...args].map((word) => `'${word}'`).join(' ');
  return ['script', ['-qec', `stty cols ${COLUMNS}; exec ${command}`, '/dev/null']];
}

function settings(cwd: string) {
  const { PATH, HOME } = process.env;
  return { cwd, env: { PATH, HOME, TERM: 'xterm', NODE_NO_WARNINGS: '1' } };
}
