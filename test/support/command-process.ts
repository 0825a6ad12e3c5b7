import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { childEnvironment, MAIN, type RunOptions } from './millrace.ts';
import { within } from './until.ts';

interface CommandOptions extends RunOptions {
  readonly stdio?: StdioOptions;
}

/** A command in a process of its own, that the test looks at while it runs; killed when the test ends. */
export class CommandProcess {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly #ended: Promise<unknown[]>;

  constructor(args: readonly string[], options: CommandOptions = {}) {
    const [file, ...before] = options.program ?? [process.execPath, MAIN];
    this.child = spawn(file, [...before, ...args], {
      cwd: options.cwd,
      env: childEnvironment(options.env),
      stdio: options.stdio ?? ['ignore', 'pipe', 'pipe'],
    });
    this.#ended = once(this.child, 'close');
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    onTestFinished(() => this.kill('SIGKILL').then(() => undefined));
  }

  /** The complete lines of JSON that it has printed. */
  lines(): Record<string, unknown>[] {
    const lines = this.stdout.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Its exit code, or the signal that ended it. */
  async ended(): Promise<number | string | null> {
    await within('the end of the command', this.#ended);
    return this.child.exitCode ?? this.child.signalCode;
  }

  kill(signal: NodeJS.Signals): Promise<number | string | null> {
    this.child.kill(signal);
    return this.ended();
  }
}
