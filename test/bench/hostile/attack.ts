import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Kind } from './kinds.ts';

export interface AttackOptions {
  readonly port: number;
  /** An address of this machine for each request, by its index; Linux has all of 127.0.0.0/8. */
  readonly from: (index: number) => string;
  readonly count: number;
  /** Requests a second; null as fast as they are answered. */
  readonly rate: number | null;
}

/** Attackers at a time, each with a connection of its own. */
const ATTACKERS = 8;

/** Sends so many hostile requests. @returns answers by status */
export async function attack(kind: Kind, options: AttackOptions): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  const { count, rate } = options;
  const idle: Socket[] = [];
  const started = performance.now();
  let next = 0;
  const one = async (line: Line): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      if (rate !== null) {
        const ahead = started + (index * 1000) / rate - performance.now();
        if (ahead > 0) await wait(ahead);
      }
      const status =
        kind.requests === null
          ? await sit(options.port, options.from(index), idle)
          : await line.send(kind, index);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
    line.end();
  };
  await Promise.all(Array.from({ length: ATTACKERS }, () => one(new Line(options))));
  for (const socket of idle) socket.destroy();
  return statuses;
}

/** Connects and says nothing. */
function sit(port: number, from: string, idle: Socket[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from });
    idle.push(socket);
    // Cut when others need its place: what it is for.
    socket.on('error', () => undefined);
    socket.once('connect', () => resolve('idle'));
    socket.once('error', reject);
  });
}

class Line {
  readonly #options: AttackOptions;
  #socket: Socket | null = null;
  #from = '';

  constructor(options: AttackOptions) {
    this.#options = options;
  }

  async send(kind: Kind, index: number): Promise<string> {
    const { port } = this.#options;
    const from = this.#options.from(index);
    if (from !== this.#from) this.end();
    this.#from = from;
    const socket = (this.#socket ??= connect({
      port,
      host: '127.0.0.1',
      localAddress: from,
      noDelay: true,
    }));
    const request = kind.requests?.[index % kind.requests.length] ?? Buffer.alloc(0);
    const status = await new Promise<string>((resolve) => {
      let text = '';
      const settle = (): void => {
        socket.removeAllListeners();
        socket.on('error', () => undefined);
        resolve(text === '' ? 'cut' : text.slice(9, 12));
      };
      socket.on('error', () => undefined);
      socket.once('close', settle);
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        // The whole answer, or the next one would be taken for this one's rest.
        if (text.includes('\r\n\r\n') && text.endsWith('}')) settle();
      });
      socket.write(request);
    });
    if (!kind.keepsAlive || status === 'cut') this.end();
    return status;
  }

  end(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }
}
