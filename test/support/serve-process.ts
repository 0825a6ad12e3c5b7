import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve as absolute } from 'node:path';
import { request } from 'undici';
import { parse } from 'yaml';
import type { SystemStatus } from '../../src/core/operations.ts';
import { childEnvironment, MAIN, type RunOptions } from './millrace.ts';
import { until, within } from './until.ts';

interface Listening {
  readonly url: string;
  readonly admin: string | null;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

interface ServeOptions extends RunOptions {
  /** More of the command line. */
  readonly args?: readonly string[];
  /** What to run in place of MAIN. */
  readonly main?: string;
}

/** `millrace serve` in a process of its own. Whoever starts one ends it. */
export class ServeProcess {
  readonly #child: ChildProcess;
  stdout = '';
  /** The log. */
  stderr = '';
  readonly exited: Promise<Exit>;
  #listening: Listening | null = null;
  /** The folder with `owner.json`, as the config says at the start. */
  readonly #state: string;

  /** Starts one and returns at once. */
  constructor(config: string, options: ServeOptions = {}) {
    this.#state = stateFolder(config, options.cwd ?? process.cwd());
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

  /** @throws when it ended instead */
  async listening(): Promise<void> {
    let over = false;
    void this.exited.then(() => (over = true));
    this.#listening = await until('the line "listening"', () => {
      const line = this.logLines().find(({ msg }) => msg === 'listening');
      if (line !== undefined) return line as unknown as Listening;
      if (over) throw new Error(`the receiver ended:\n${this.stderr}`);
      return null;
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Where deliveries go. */
  get url(): string {
    return this.#listening?.url ?? '';
  }

  get adminUrl(): string {
    return this.#listening?.admin ?? '';
  }

  /** Every complete line of the log that is JSON. */
  logLines(): Record<string, unknown>[] {
    return this.stderr
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Sends the signal and waits for the end. */
  async kill(signal: NodeJS.Signals): Promise<Exit> {
    this.signal(signal);
    return within(`the receiver's end after ${signal}`, this.exited);
  }

  signal(signal: NodeJS.Signals): void {
    if (this.running) this.#child.kill(signal);
  }

  /** Nobody reads its stdout any more. */
  loseStdout(): void {
    this.#child.stdout?.destroy();
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** What the admin API asks for, from where the commands have it. */
  get authorization(): { readonly authorization: string } {
    const { token } = JSON.parse(readFileSync(join(this.#state, 'owner.json'), 'utf8')) as { token: string };
    return { authorization: `Bearer ${token}` };
  }

  async status(): Promise<SystemStatus> {
    const { body } = await request(`${this.adminUrl}/api/status`, { headers: this.authorization });
    return (await body.json()) as SystemStatus;
  }

  /** Waits until no sink has a backlog. */
  async drained(): Promise<SystemStatus> {
    return until('an empty backlog', async () => {
      const status = await this.status();
      return status.journal.cursors.every(({ backlog }) => backlog === 0) ? status : null;
    });
  }
}

type Config = Partial<Record<'journal' | 'erasure', { path?: string; type?: string }>> & {
  acknowledge?: string;
};

function stateFolder(file: string, cwd: string): string {
  let config: Config = {};
  try {
    config = parse(readFileSync(absolute(cwd, file), 'utf8')) as Config;
  } catch {
    // Tests also start what cannot start.
  }
  const isStateless = config.acknowledge === 'delivered' || config.journal?.type === 'kafka';
  const path = isStateless ? config.erasure?.path : config.journal?.path;
  return absolute(cwd, path ?? (isStateless ? 'data/erasure' : 'data/journal'));
}
