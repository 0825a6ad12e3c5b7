import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { closeSync, fstatSync, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { endChild } from '../../support/child-server.ts';
import { firstLack, lacksProgram, type Lack } from '../../support/requirements.ts';
import { SECRET } from '../../support/signed-events.ts';
import type { BenchContext } from '../bench.ts';
import type { Kept, Server } from '../ingest/contestant.ts';
import { PATH } from './vf.ts';

/** `vf`: verifies, parses, checks ids and appends with an fdatasync before the answer, and nothing else. */
export const RIVALS = ['express', 'express-vf', 'node-vf', 'go-vf'] as const;
/** Programs of others. */
export const PRODUCTS = ['svix-bridge', 'bento'] as const;
type ProductName = (typeof PRODUCTS)[number];
export type RivalName = (typeof RIVALS)[number] | ProductName;

/** Statuses for a genuine and for a forged delivery; others are an error. */
const ANSWERS: Readonly<Record<ProductName, { readonly accepted: string; readonly forged: number }>> = {
  'svix-bridge': { accepted: '204', forged: 400 },
  bento: { accepted: '200', forged: 401 },
};

function isProduct(name: RivalName): name is ProductName {
  return name in ANSWERS;
}

/** Programs of rivals that need more than Node. */
const NEEDED: Readonly<Partial<Record<RivalName, readonly string[]>>> = {
  'go-vf': ['go'],
  'svix-bridge': ['svix-bridge', 'redis-server'],
  bento: ['bento'],
};

export function lackOf(name: RivalName): Lack {
  return firstLack(...(NEEDED[name] ?? []).map((program) => lacksProgram(program)));
}

/** A handler that is measured beside the receiver, a process of its own. */
export class Rival implements Server {
  readonly name: RivalName;
  readonly port: number;
  readonly #child: ChildProcess;
  /** What it prints. */
  readonly #lines: AsyncIterator<string>;
  readonly #folder: string;

  private constructor(
    name: RivalName,
    child: ChildProcess,
    port: number,
    lines: AsyncIterator<string>,
    folder: string,
  ) {
    this.name = name;
    this.#child = child;
    this.port = port;
    this.#lines = lines;
    this.#folder = folder;
  }

  /** @throws Error when it does not refuse a forged signature */
  static async start(name: RivalName, context: Pick<BenchContext, 'folder' | 'atEnd'>): Promise<Rival> {
    const folder = join(context.folder, name);
    mkdirSync(folder);
    const [program, ...args] = commandOf(name, folder);
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], RIVAL_SECRET: SECRET, NODE_ENV: 'production' },
    });
    context.atEnd(() => endChild(child, 'SIGTERM'));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { done, value } = await lines.next();
    if (done === true) throw new Error(`${name} ended before it listened`);
    const rival = new Rival(name, child, (JSON.parse(value) as { port: number }).port, lines, folder);
    if (name !== 'express') await rival.#refusesForged();
    return rival;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get accepted(): string {
    return isProduct(this.name) ? ANSWERS[this.name].accepted : '202';
  }

  /** Only Bento delivers anything: until its file grows no more. */
  async untilDelivered(): Promise<void> {
    if (this.name !== 'bento') return;
    const size = (): number => statSync(join(this.#folder, 'events.ndjson')).size;
    for (let [before, now] = [-1, 0]; now !== before; [before, now] = [now, size()]) await wait(500);
  }

  end(): Promise<void> {
    return endChild(this.#child, 'SIGTERM');
  }

  async kept(): Promise<Kept | null> {
    if (this.name === 'express') return null;
    if (!isProduct(this.name)) return countRecords(logIn(this.#folder));
    const { records } = JSON.parse((await this.#lines.next()).value as string) as { records: number };
    return { records, ids: records };
  }

  async #refusesForged(): Promise<void> {
    const { status } = await fetch(`http://127.0.0.1:${this.port}${PATH}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': 'forged',
        'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
        'webhook-signature': `v1,${'A'.repeat(43)}=`,
      },
      body: '{}',
    });
    if (status !== (isProduct(this.name) ? ANSWERS[this.name].forged : 401))
      throw new Error(`${this.name} answered a forged delivery with ${status}`);
  }
}

function commandOf(name: RivalName, folder: string): [string, ...string[]] {
  if (isProduct(name)) return [process.execPath, script('products.ts'), name, folder];
  if (name !== 'go-vf') return [process.execPath, script('node.ts'), name, logIn(folder)];
  const program = join(folder, 'go-vf');
  execFileSync('go', ['build', '-o', program, '.'], { cwd: script('go-vf'), stdio: 'inherit' });
  return [program, logIn(folder)];
}

function script(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

function logIn(folder: string): string {
  return join(folder, 'events.log');
}

/** Records are `ID LENGTH\n`, so many bytes, and a line break. */
function countRecords(path: string): Kept {
  let records = 0;
  const ids = new Set<string>();
  const file = openSync(path, 'r');
  const head = Buffer.alloc(400);
  const size = fstatSync(file).size;
  for (let at = 0; at < size;) {
    const text = head.toString('latin1', 0, readSync(file, head, 0, head.length, at));
    const end = text.indexOf('\n');
    const [id = '', length = ''] = text.slice(0, end).split(' ');
    ids.add(id);
    records += 1;
    at += end + 1 + Number(length) + 1;
    if (at > size) throw new Error(`the record of ${id} is not whole`);
  }
  closeSync(file);
  return { records, ids: ids.size };
}
