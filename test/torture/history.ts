import { createHmac } from 'node:crypto';
import { openSync, readSync, closeSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool, request } from 'undici';
import { ServeProcess } from '../support/serve-process.ts';
import { until } from '../support/until.ts';
import type { Random } from './choose.ts';
import { recorded } from './recorder.ts';

// A run of the receiver, with everything that its operator and its sender know of it.

/** What the sender knows of one event. */
export interface Sent {
  readonly id: string;
  readonly body: string;
  readonly type: string;
  readonly user: string;
  /** Whether it can be routed; if not, it is quarantined. */
  readonly valid: boolean;
  /** Route tables that it may have been accepted under: the first and the last. */
  readonly first: number;
  last: number;
  /** Whether an answer of 2xx has come. */
  acknowledged: boolean;
}

/** A user whose erasure was asked for. */
export interface Erased {
  readonly user: string;
  /** Id of the request, and of its receipt; null where no answer came. */
  receipt: string | null;
  /** Whether an answer had the receipt. */
  isDone: boolean;
}

export interface History {
  /** What was recorded lay below it, and states are laid out there. */
  readonly root: string;
  readonly seed: number;
  readonly events: readonly Sent[];
  readonly erasures: readonly Erased[];
  /** Whether a process was killed from outside. */
  readonly isKilled: boolean;
  /** Each config as it was written, and how long the log was then. */
  readonly configs: readonly { readonly from: number; readonly table: number; readonly text: string }[];
}

/** Route tables: prefix of the type, and the sinks. */
export const TABLES: readonly (readonly { readonly match: string; readonly to: readonly string[] }[])[] = [
  [
    { match: 'daily.', to: ['a'] },
    { match: 'labtest.', to: ['a', 'b'] },
    { match: '*', to: ['a'] },
  ],
  [
    { match: 'daily.', to: ['b'] },
    { match: 'labtest.', to: ['b', 'a'] },
    { match: '*', to: ['a'] },
  ],
];

export function dueAt(table: number, type: string): readonly string[] {
  const rule = TABLES[table % TABLES.length]?.find(({ match }) => match === '*' || type.startsWith(match));
  return rule?.to ?? [];
}

/** Guards nothing: it is made for these runs. */
const KEY = Buffer.from('made-up key of the torture runs');
export const SECRET = `whsec_${KEY.toString('base64')}`;

/** Headers that sign a body as the scheme `standard-webhooks` says it; nothing of the product is used. */
export function signed(id: string, body: string): Record<string, string> {
  const at = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', KEY).update(`${id}.${at}.${body}`).digest('base64');
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': at,
    'webhook-signature': `v1,${signature}`,
  };
}

/** Where things lie below the root: each on a volume of its own, as operators do it. */
export const PLACES = {
  journal: 'disk-1/journal',
  erasure: 'disk-2/erasure',
  a: 'disk-3/a',
  b: 'disk-4/b',
} as const;

/** What happens to a receiver. `crash`: it kills itself in the middle of something. */
export type Step =
  'burst' | 'again' | 'invalid' | 'reload' | 'erase' | 'pause' | 'rest' | 'crash' | 'kill' | 'stop';

export interface HistoryOptions {
  readonly seed: number;
  readonly random: Random;
  readonly folder: string;
  readonly library: string;
  /** The last one has to end the receiver. */
  readonly steps: readonly Step[];
}

const CHANCES: readonly (readonly [Step, number])[] = [
  ['burst', 12],
  ['again', 2],
  ['invalid', 2],
  ['reload', 2],
  ['erase', 2],
  ['pause', 1],
  ['rest', 1],
  ['crash', 2],
  ['kill', 1],
  ['stop', 2],
];

/** Mostly few steps: a state of a short run is recovered from in a third of the time. */
export function drawLength(random: Random): number {
  return random() < 0.85 ? 2 + Math.floor(random() * 4) : 6 + Math.floor(random() * 11);
}

/** Draws what happens. */
export function drawSteps(random: Random, count: number): Step[] {
  const all = CHANCES.flatMap(([step, chance]) => Array.from({ length: chance }, () => step));
  const steps = Array.from({ length: count }, () => all[Math.floor(random() * all.length)] as Step);
  return [...steps, random() < 0.7 ? 'stop' : 'kill'];
}

/** Runs one, and leaves its log in `folder/log`. */
export async function runHistory(options: HistoryOptions): Promise<History> {
  const run = new Run(options);
  try {
    for (const step of options.steps) await run.step(step);
    return run.history();
  } finally {
    await run.stop();
  }
}

const TEAM = '6b0e9a52-0000-4000-8000-000000000001';

class Run {
  readonly #options: HistoryOptions;
  readonly #events: Sent[] = [];
  readonly #acknowledged: Sent[] = [];
  readonly #erasures: Erased[] = [];
  readonly #configs: { from: number; table: number; text: string }[] = [];
  /** The route table that is in force, and the newest that may be. */
  #settled = 0;
  #newest = 0;
  #process: ServeProcess | null = null;
  #pool: Pool | null = null;
  /** Whether it was killed from outside. */
  isKilled = false;

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  get #root(): string {
    return join(this.#options.folder, 'root');
  }

  async step(step: Step): Promise<void> {
    if (this.#process === null) await this.#launch(step === 'crash');
    switch (step) {
      case 'burst':
        return this.#burst(1 + Math.floor(this.#options.random() * 6));
      case 'again':
        return this.#again();
      case 'invalid':
        return this.#post(this.#newEvent(false));
      case 'reload':
        return this.#reload();
      case 'erase':
        return this.#erase();
      case 'pause':
        // What may be late is written within this time.
        return wait(250);
      case 'rest':
        // The journal clears away what is past its retention.
        return wait(5500);
      case 'crash':
        return this.#crash();
      case 'kill':
        return this.#kill('SIGKILL');
      case 'stop':
        return this.#kill('SIGTERM');
      default:
        step satisfies never;
    }
  }

  history(): History {
    const { seed } = this.#options;
    const { isKilled } = this;
    return {
      root: this.#root,
      seed,
      events: this.#events,
      erasures: this.#erasures,
      configs: this.#configs,
      isKilled,
    };
  }

  async stop(): Promise<void> {
    await this.#kill('SIGKILL');
  }

  /** @param crashes whether it is to kill itself: a kill from outside could fall between an operation and its record */
  async #launch(crashes = false): Promise<void> {
    if (this.#configs.length === 0) this.#writeConfig();
    const { folder, library, random } = this.#options;
    const killAt = crashes ? 100 + Math.floor(random() * 500) : undefined;
    const env = recorded({ library, log: join(folder, 'log'), root: this.#root, killAt });
    this.#process = new ServeProcess(join(folder, 'config.json'), { env });
    try {
      await this.#process.listening();
    } catch (error) {
      if (killAt === undefined) throw error;
      await this.#launch();
      return;
    }
    this.#pool = new Pool(new URL(this.#process.url).origin, { connections: 8 });
    this.#settled = this.#newest;
  }

  /** Starts one that will kill itself, and sends events until it does. */
  async #crash(): Promise<void> {
    if (this.#events.length > 0) await this.#kill('SIGTERM');
    if (this.#process === null) await this.#launch(true);
    const process = this.#process as unknown as ServeProcess;
    for (let posts = 0; posts < 20 && process === this.#process; posts += 1) await this.#burst(2);
  }

  async #kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#pool?.destroy();
    this.#pool = null;
    const process = this.#process;
    this.#process = null;
    if (process?.running === true && signal === 'SIGKILL') this.isKilled = true;
    await process?.kill(signal);
  }

  async #burst(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#post(this.#newEvent(true))));
  }

  async #again(): Promise<void> {
    const known = this.#acknowledged[Math.floor(this.#options.random() * this.#acknowledged.length)];
    if (known !== undefined) await this.#post(known);
  }

  /** The other route table, with deliveries on their way. */
  async #reload(): Promise<void> {
    const process = this.#process as ServeProcess;
    const before = process.logLines().filter(({ msg }) => msg === 'reloaded').length;
    this.#newest += 1;
    this.#writeConfig();
    process.signal('SIGHUP');
    const posts = this.#burst(2);
    await this.#orDead(() => process.logLines().filter(({ msg }) => msg === 'reloaded').length > before);
    await posts;
    this.#settled = this.#newest;
  }

  async #erase(): Promise<void> {
    const users = new Set(this.#acknowledged.map(({ user }) => user));
    for (const { user } of this.#erasures) users.delete(user);
    const [user] = users;
    if (user === undefined) return;
    const process = this.#process as ServeProcess;
    const erasure: Erased = { user, receipt: null, isDone: false };
    this.#erasures.push(erasure);
    try {
      const asked = (await this.#admin('', { by: 'user', id: user, team: null, now: true })) as {
        request: string;
      };
      erasure.receipt = asked.request;
      const { receipts } = (await this.#admin('/run', {})) as { receipts: { receipt: string }[] };
      erasure.isDone = receipts.some(({ receipt }) => receipt === asked.request);
    } catch (error) {
      if (process.running && !(await gone(process))) throw error;
    }
    await this.#revive();
  }

  async #admin(path: string, body: object): Promise<unknown> {
    const { adminUrl, authorization } = this.#process as ServeProcess;
    const { statusCode, body: answer } = await request(`${adminUrl}/api/erasures${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorization },
      body: JSON.stringify(body),
    });
    const json = await answer.json();
    if (statusCode !== 200) throw new Error(`erasures${path}: ${statusCode} ${JSON.stringify(json)}`);
    return json;
  }

  #newEvent(valid: boolean): Sent {
    const { random, seed } = this.#options;
    const number = this.#events.length;
    const type = ['daily.data.meal.created', 'labtest.update', 'provider.connected'][number % 3] as string;
    const live = [0, 1, 2, 3, 4].map(userOf).filter((id) => !this.#erasures.some(({ user }) => user === id));
    const user = live[Math.floor(random() * live.length)] as string;
    // Most are smaller than a sector, some are larger than several.
    const note = 'n'.repeat(Math.floor(random() * (random() < 0.15 ? 20_000 : 700)));
    const about = {
      event_type: type,
      user_id: user,
      client_user_id: `client of ${user}`,
      data: { number, note },
    };
    const body = JSON.stringify(valid ? { ...about, team_id: TEAM } : about);
    const first = this.#settled;
    return {
      id: `msg_${seed}_${number}`,
      body,
      type,
      user,
      valid,
      first,
      last: this.#newest,
      acknowledged: false,
    };
  }

  async #post(event: Sent): Promise<void> {
    if (!this.#events.includes(event)) this.#events.push(event);
    const { id, body } = event;
    const process = this.#process as ServeProcess;
    try {
      const options = { method: 'POST', path: '/webhooks', headers: signed(id, body), body } as const;
      const { statusCode, body: answer } = await (this.#pool as Pool).request(options);
      await answer.dump();
      if (statusCode === 202) {
        event.last = this.#newest;
        event.acknowledged = true;
        this.#acknowledged.push(event);
      } else if (statusCode !== 200) throw new Error(`${id} was answered with ${statusCode}`);
    } catch (error) {
      event.last = this.#newest;
      if (process.running && !(await gone(process))) throw error;
    }
    await this.#revive();
  }

  /** One that has killed itself is started again. */
  async #revive(): Promise<void> {
    if (this.#process?.running === true) return;
    this.#reviving ??= this.#kill('SIGKILL')
      .then(() => this.#launch())
      .finally(() => (this.#reviving = null));
    await this.#reviving;
  }

  #reviving: Promise<void> | null = null;

  async #orDead(condition: () => boolean): Promise<void> {
    const process = this.#process as ServeProcess;
    await until('a reload', () => condition() || !process.running);
    await this.#revive();
  }

  #writeConfig(): void {
    const text = configText(this.#root, this.#newest);
    const { folder } = this.#options;
    this.#configs.push({ from: logLength(join(folder, 'log')), table: this.#newest, text });
    writeFileSync(join(folder, 'config.json'), text);
  }
}

/** Waits for a process that has ended, until the kernel reports it. */
async function gone(process: ServeProcess): Promise<boolean> {
  return Promise.race([
    process.exited.then(() => true),
    new Promise<boolean>((resolve) => setTimeout(resolve, 10_000, false)),
  ]);
}

function userOf(number: number): string {
  return `6b0e9a52-1111-4000-8000-00000000000${number}`;
}

function logLength(path: string): number {
  const file = openSync(path, 'r');
  const length = Buffer.alloc(8);
  readSync(file, length, 0, 8, 0);
  closeSync(file);
  return Number(length.readBigUInt64LE());
}

/** Files are rotated after a few events, so that much happens in a short run. */
export function configText(root: string, table: number): string {
  const at = (place: keyof typeof PLACES): string => join(root, PLACES[place]);
  return JSON.stringify({
    server: { host: '127.0.0.1', port: 0 },
    admin: { port: 0 },
    signing: { secrets: [SECRET] },
    journal: { path: at('journal'), retention: '1s' },
    erasure: { path: at('erasure') },
    sinks: {
      a: { type: 'files', path: at('a'), rotate: { bytes: '4KiB' } },
      b: { type: 'files', path: at('b'), rotate: { bytes: '8KiB' }, compress: 'none', partitionBy: ['type'] },
    },
    routes: TABLES[table % TABLES.length],
    log: { level: 'info' },
  });
}
