import { readFileSync } from 'node:fs';
import { join, resolve as absolute } from 'node:path';
import { parse } from 'yaml';
import type { SystemStatus } from '../../src/core/operations.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { type Answer, type PostOptions, postSigned } from './signed-events.ts';
import { until, within } from './until.ts';

interface Listening {
  readonly url: string;
  readonly admin: string | null;
}

/** Whatever a document holds: the test says what it expects. */
type Json = ReturnType<typeof JSON.parse>;

/** What is sent: so many made-up events, or these. */
export type Sent = number | readonly { readonly id: string; readonly body: Buffer }[];

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** What tests ask of a `millrace serve`, wherever it runs. */
export abstract class Serving {
  stdout = '';
  /** The log. */
  stderr = '';
  abstract readonly exited: Promise<Exit>;
  #listening: Listening | null = null;
  /** The folder with `owner.json`, as the config says at the start. */
  readonly #state: string;

  protected constructor(config: string, cwd = process.cwd()) {
    this.#state = stateFolder(config, cwd);
  }

  abstract signal(signal: NodeJS.Signals): void;

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

  /** SIGTERM, and an end with 0. */
  async stop(): Promise<void> {
    const { code, signal } = await this.kill('SIGTERM');
    if (code !== 0) throw new Error(`ended with ${code ?? signal}:\n${this.stderr}`);
  }

  /** Signs and posts one body; a made-up event unless another is given. */
  post(body?: Buffer, options?: PostOptions): Promise<Answer> {
    return postSigned(this.url, body, options);
  }

  /**
   * Sends events one after the other, each of which has to be answered 202.
   * @param from number of the first made-up one
   * @returns their bodies by id
   */
  async send(events: Sent, from = 0, type?: string): Promise<Map<string, Buffer>> {
    const all =
      typeof events === 'number'
        ? Array.from({ length: events }, (_, n) => madeUpEvent(from + n, type))
        : events;
    for (const { id, body } of all) {
      const { status } = await this.post(body, { id });
      if (status !== 202) throw new Error(`${id} was answered ${status}`);
    }
    return new Map(all.map(({ id, body }) => [id, body]));
  }

  /** Sends SIGHUP. @returns the line of the log that says what came of it */
  async reload(): Promise<Record<string, unknown>> {
    const answers = () => this.logLines().filter(({ msg }) => /^reload(ed| failed)/.test(String(msg)));
    const before = answers().length;
    this.signal('SIGHUP');
    await until('an answer to SIGHUP', () => answers().length > before);
    return answers().at(-1) ?? {};
  }

  /** A page of the admin listener, as the commands may see it. */
  ask(path: string): Promise<Response> {
    return fetch(new URL(path, this.adminUrl), { headers: this.authorization });
  }

  /** Asks the admin API as the commands do; posts the body, if one is given. */
  async call(path: string, body?: object): Promise<{ readonly status: number; readonly answer: Json }> {
    const headers = { ...this.authorization, 'content-type': 'application/json' };
    const posted = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(new URL(path, this.adminUrl), { headers, ...posted });
    return { status: response.status, answer: await response.json() };
  }

  async metrics(): Promise<string> {
    return (await this.ask('/metrics')).text();
  }

  /** What the admin API asks for, from where the commands have it. */
  get authorization(): { readonly authorization: string } {
    const { token } = JSON.parse(readFileSync(join(this.#state, 'owner.json'), 'utf8')) as { token: string };
    return { authorization: `Bearer ${token}` };
  }

  async status(): Promise<SystemStatus> {
    return (await (await this.ask('/api/status')).json()) as SystemStatus;
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
