import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, mkdirSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { endChild } from '../../support/child-server.ts';
import { lacksProgram, type Lack } from '../../support/requirements.ts';
import { SECRET } from '../../support/signed-events.ts';
import type { BenchContext } from '../bench.ts';
import type { Kept, Server } from '../ingest/contestant.ts';
import { PATH } from './vf.ts';

/** `vf`: verifies, parses, checks ids and appends with an fdatasync before the answer, and nothing else. */
export const RIVALS = ['express', 'express-vf', 'node-vf', 'go-vf'] as const;
export type RivalName = (typeof RIVALS)[number];

export function lackOf(name: RivalName): Lack {
  return name === 'go-vf' ? lacksProgram('go') : null;
}

/** A handler that is measured beside the receiver, a process of its own. */
export class Rival implements Server {
  readonly name: RivalName;
  readonly port: number;
  readonly #child: ChildProcess;
  /** Where it appends; null when it keeps nothing. */
  readonly #file: string | null;

  private constructor(name: RivalName, child: ChildProcess, port: number, file: string | null) {
    this.name = name;
    this.#child = child;
    this.port = port;
    this.#file = file;
  }

  /** @throws Error when it does not refuse a forged signature */
  static async start(name: RivalName, context: Pick<BenchContext, 'folder' | 'atEnd'>): Promise<Rival> {
    const folder = join(context.folder, name);
    mkdirSync(folder);
    const file = name === 'express' ? null : join(folder, `${name}.log`);
    const [program, ...args] = commandOf(name, folder);
    const child = spawn(program, [...args, ...(file === null ? [] : [file])], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], RIVAL_SECRET: SECRET, NODE_ENV: 'production' },
    });
    context.atEnd(() => endChild(child));
    const lines = createInterface({ input: child.stdout });
    const [line] = (await Promise.race([once(lines, 'line'), ended(name, child)])) as [string];
    const rival = new Rival(name, child, (JSON.parse(line) as { port: number }).port, file);
    if (file !== null) await rival.#refusesForged();
    return rival;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** It delivers to no destination. */
  untilDelivered(): Promise<void> {
    return Promise.resolve();
  }

  end(): Promise<void> {
    return endChild(this.#child, 'SIGTERM');
  }

  kept(): Promise<Kept | null> {
    return Promise.resolve(this.#file === null ? null : countRecords(this.#file));
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
    if (status !== 401) throw new Error(`${this.name} answered a forged delivery with ${status}`);
  }
}

function commandOf(name: RivalName, folder: string): [string, ...string[]] {
  if (name !== 'go-vf') return [process.execPath, fileURLToPath(new URL('node.ts', import.meta.url)), name];
  const program = join(folder, 'go-vf');
  execFileSync('go', ['build', '-o', program, '.'], {
    cwd: fileURLToPath(new URL('go-vf', import.meta.url)),
    stdio: 'inherit',
  });
  return [program];
}

async function ended(name: RivalName, child: ChildProcess): Promise<never> {
  await once(child, 'exit');
  throw new Error(`${name} ended before it listened`);
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
