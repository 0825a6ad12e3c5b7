import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { listen } from '../support/listen.ts';

export const TARGETS = ['x', 'y', 'z', 'replayed'] as const;
export type Target = (typeof TARGETS)[number];

/** What a target does with a delivery. `loses` takes it, and its answer is lost; `hangs` never answers, and takes nothing. */
export const MOODS = [
  'takes',
  'takes',
  'loses',
  'fails',
  'busy',
  'refuses',
  'drags',
  'hangs',
  'cuts',
] as const;
export type Mood = (typeof MOODS)[number];

const STATUS: Partial<Record<Mood, number>> = { fails: 500, busy: 503, refuses: 400 };

/** Endpoints of a user's own, which list what they have taken. */
export class Targets {
  readonly had: Record<Target, Set<string>> = {
    x: new Set(),
    y: new Set(),
    z: new Set(),
    replayed: new Set(),
  };
  /** Ids whose bytes were others than those that were sent. */
  readonly wrong: string[] = [];
  readonly #moods: Record<Target, Mood> = { x: 'takes', y: 'takes', z: 'takes', replayed: 'takes' };
  readonly #bodies: ReadonlyMap<string, Buffer>;
  #port = 0;

  private constructor(bodies: ReadonlyMap<string, Buffer>) {
    this.#bodies = bodies;
  }

  /** @param bodies what was sent, by id */
  static async start(bodies: ReadonlyMap<string, Buffer>): Promise<Targets> {
    const targets = new Targets(bodies);
    const server = createServer((request, response) => void targets.#answer(request, response));
    targets.#port = await listen(server);
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return targets;
  }

  url(target: Target): string {
    return `http://127.0.0.1:${this.#port}/${target}`;
  }

  turn(target: Target, mood: Mood): void {
    this.#moods[target] = mood;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = request.url?.slice(1) as Target;
    const id = String(request.headers['webhook-id']);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // Its receiver was killed.
      return;
    }
    const mood = this.#moods[target];
    const status = STATUS[mood];
    if (status !== undefined) return void response.writeHead(status, { 'retry-after': '1' }).end();
    if (mood === 'cuts') return void request.socket.destroy();
    if (mood === 'hangs') return;
    if (!Buffer.concat(chunks).equals(this.#bodies.get(id) ?? Buffer.alloc(0))) this.wrong.push(id);
    this.had[target].add(id);
    if (mood === 'loses') request.socket.destroy();
    else if (mood === 'drags') setTimeout(() => response.writeHead(204).end(), 150);
    else response.writeHead(200).end();
  }
}
