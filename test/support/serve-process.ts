import { type ChildProcess, spawn } from 'node:child_process';
import { childEnvironment, MAIN, type RunOptions } from './millrace.ts';
import { type Exit, Serving } from './serving.ts';

interface ServeOptions extends RunOptions {
  /** More of the command line. */
  readonly args?: readonly string[];
  /** What to run instead of MAIN. */
  readonly main?: string;
}

/** `millrace serve` in a process of its own. The test that starts one ends it. */
export class ServeProcess extends Serving {
  readonly #child: ChildProcess;
  readonly exited: Promise<Exit>;

  /** Starts one and returns at once. */
  constructor(config: string, options: ServeOptions = {}) {
    super(config, options.cwd);
    const [file, ...before] = options.program ?? [process.execPath, options.main ?? MAIN];
    this.#child = spawn(file, [...before, 'serve', '--config', config, ...(options.args ?? [])], {
      cwd: options.cwd,
      env: childEnvironment(options.env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => resolve({ code, signal }));
      this.#child.once('error', (error) => {
        this.stderr += `${error.message}\n`;
        resolve({ code: null, signal: null });
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.running) this.#child.kill(signal);
  }

  /** Stops reading its stdout. */
  loseStdout(): void {
    this.#child.stdout?.destroy();
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
}
