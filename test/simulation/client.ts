import { createHmac } from 'node:crypto';
import { duplexPair } from 'node:stream';
import { START } from './globals.ts';
import type { World } from './world.ts';

export const PORT = 8080;
/** Base64 of nothing that guards anything. */
const KEY = Buffer.from('made-up secret of the simulation');
export const SECRET = `whsec_${KEY.toString('base64')}`;

export interface Message {
  readonly id: string;
  readonly body: string;
}

/**
 * Posts a message as the service does. Resolves with the status; 0 when there was no answer: no listener, a broken
 * connection, or a time-out.
 */
export function post(world: World, { id, body }: Message, breaks: boolean): Promise<number> {
  const { scheduler } = world;
  const server = world.servers.get(PORT);
  if (server === undefined) return Promise.resolve(0);
  const seconds = String(Math.floor((START + scheduler.now) / 1000));
  const signature = createHmac('sha256', KEY).update(`${id}.${seconds}.${body}`).digest('base64');
  const [near, far] = duplexPair();
  const socket = Object.assign(far, {
    remoteAddress: '192.0.2.1',
    setTimeout: () => socket,
    setNoDelay: () => socket,
    setKeepAlive: () => socket,
    ref: () => socket,
    unref: () => socket,
    destroySoon: () => far.destroy(),
  });
  return new Promise((resolve) => {
    let text = '';
    const end = (status: number): void => {
      cancel();
      near.destroy();
      far.destroy();
      resolve(status);
    };
    const cancel = scheduler.after(60_000, () => end(0));
    near.on('error', () => end(0));
    near.on('close', () => end(0));
    near.on('data', (piece: Buffer) => {
      text += piece.toString('latin1');
      const status = /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1];
      // The answer is on its way; whether it arrives is another matter.
      if (status !== undefined) scheduler.later(() => end(breaks ? 0 : Number(status)));
    });
    scheduler.within(lifeOf(server), () => server.emit('connection', socket));
    near.write(
      `POST /webhooks HTTP/1.1\r\nHost: simulated\r\nContent-Type: application/json\r\n` +
        `webhook-id: ${id}\r\nwebhook-timestamp: ${seconds}\r\nwebhook-signature: v1,${signature}\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
}

const lives = new WeakMap<object, World['scheduler']['life']>();

/** A server belongs to the life in which it was made. */
export function bind(server: object, life: World['scheduler']['life']): void {
  lives.set(server, life);
}

function lifeOf(server: object): World['scheduler']['life'] {
  return lives.get(server) ?? null;
}
