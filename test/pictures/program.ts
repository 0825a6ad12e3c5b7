import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';

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

/** Columns of the terminal that commands run in. */
export const COLUMNS = 112;

/** Runs a command in a folder, in a terminal of its own, to its end. @returns what it printed */
export async function run(main: string, folder: string, args: readonly string[]): Promise<string> {
  const [program, line] = inTerminal(main, args);
  const { stdout } = await promisify(execFile)(program, line, settings(folder));
  return stdout;
}

/** Starts `millrace serve` in a folder that has a config, and waits until it listens. */
export async function serve(main: string, folder: string): Promise<Serving> {
  const [program, line] = inTerminal(main, ['serve']);
  const child = spawn(program, line, { ...settings(folder), stdio: ['pipe', 'pipe', 'inherit'] });
  let shown = '';
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    if (shown.includes('listening')) resolve();
  });
  child.once('exit', () => reject(new Error(`serve ended:\n${shown}`)));
  await promise;
  return { child, shown: () => shown };
}

/** Ctrl-C, as a person ends it. */
export async function stop({ child }: Serving): Promise<void> {
  const ended = once(child, 'exit');
  child.stdin?.write('\u0003');
  await ended;
}

function inTerminal(main: string, args: readonly string[]): [program: string, args: string[]] {
  const command = [process.execPath, main, ...args].map((word) => `'${word}'`).join(' ');
  return ['script', ['-qec', `stty cols ${COLUMNS}; exec ${command}`, '/dev/null']];
}

function settings(cwd: string) {
  const { PATH, HOME } = process.env;
  return { cwd, env: { PATH, HOME, TERM: 'xterm', NODE_NO_WARNINGS: '1' } };
}
