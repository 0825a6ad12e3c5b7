import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import type { SinkContext } from '../../src/core/sink.ts';
import type { Resolve } from '../../src/sinks/http/addresses.ts';
import { parseOptions } from '../../src/sinks/http/config.ts';
import { HttpSink } from '../../src/sinks/http/sink.ts';
import { makeContext, type TestContext } from './support.ts';

/** 24 bytes, made up. */
export const SECRET = `whsec_${Buffer.from('a made-up secret for us!').toString('base64')}`;

/** One request as it came in. */
export interface Post {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly status: number;
}

/** What is answered: a status, with headers if need be; `hang` never answers, a function answers by itself. */
export type Reply =
  | number
  | readonly [status: number, headers: Record<string, string>]
  | 'hang'
  | ((response: ServerResponse) => void);

/** An endpoint that events are posted to, over real sockets. It answers 204 until `reply` says something else. */
export class Endpoint {
  readonly posts: Post[] = [];
  reply: (path: string, body: Buffer, headers: IncomingHttpHeaders) => Reply | Promise<Reply> = () => 204;
  /** Requests that are being answered, and the most that ever were. */
  open = 0;
  most = 0;
  connections = 0;
  readonly #server: Server;
  readonly #scheme: string;
  #port = 0;

  constructor(tls?: ServerOptions) {
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#server = tls === undefined ? createServer() : createTlsServer(tls);
    this.#server.on('connection', () => (this.connections += 1));
    this.#server.on('request', (request, response: ServerResponse) => {
      const { url: path = '', headers } = request;
      this.open += 1;
      this.most = Math.max(this.most, this.open);
      response.on('close', () => (this.open -= 1));
      void buffer(request)
        .then(async (body) => {
          const reply = await this.reply(path, body, headers);
          if (reply === 'hang') return;
          if (typeof reply === 'function') return reply(response);
          const [status, more] = typeof reply === 'number' ? [reply, {}] : reply;
          this.posts.push({ path, headers, body, status });
          response.writeHead(status, more).end();
        })
        .catch(() => response.destroy());
    });
  }

  async start(): Promise<this> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Cuts every connection; clients can connect again at once. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  url(path: string, host = '127.0.0.1'): string {
    return `${this.#scheme}://${host}:${this.#port}${path}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Ids of what was answered with a 2xx. */
  ids(path?: string): string[] {
    return this.posts
      .filter((post) => post.status < 300 && (path === undefined || post.path === path))
      .map(({ headers }) => String(headers['idempotency-key']));
  }
}

/** Stopped after the test. */
export async function startEndpoint(tls?: ServerOptions): Promise<Endpoint> {
  const endpoint = await new Endpoint(tls).start();
  onTestFinished(() => endpoint.stop());
  return endpoint;
}

/** With a clock that runs. */
export function runningContext(): SinkContext & Pick<TestContext, 'lines'> {
  return { ...makeContext(), clock: systemClock };
}

/** An open sink that may go to 127.0.0.1, closed after the test. */
export async function openHttp(
  options: object,
  context: SinkContext = runningContext(),
  resolve?: Resolve,
): Promise<HttpSink> {
  const parsed = parseOptions({ secrets: [SECRET], privateNetworks: ['127.0.0.1'], ...options });
  const sink = new HttpSink(parsed, context, resolve);
  onTestFinished(() => sink.close(AbortSignal.abort()));
  await sink.open();
  return sink;
}
