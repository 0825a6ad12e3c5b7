import { createServer, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Arrived } from '../../src/sinks/contract-checks.ts';
import { loadSinkModule } from '../../src/sinks/registry.ts';
import { runContract } from './run-contract.ts';
import { deliver, makeContext, signal } from './support.ts';
import { listen } from '../support/listen.ts';

const module = await loadSinkModule(
  './own-sink.js',
  fileURLToPath(new URL('../../config/examples', import.meta.url)),
);

/** An endpoint that keeps what it is sent, or answers with `status` when told to. */
class Endpoint {
  readonly arrived: Arrived[] = [];
  readonly requests: IncomingMessage[] = [];
  answer: { status: number; headers?: Record<string, string> } = { status: 200 };
  readonly #server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    this.requests.push(request);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (this.answer.status === 200) this.#keep(request.url ?? '', Buffer.concat(chunks).toString());
      response.writeHead(this.answer.status, this.answer.headers).end('an answer');
    });
  });

  async listen(): Promise<string> {
    return `http://127.0.0.1:${await listen(this.#server)}/ingest`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #keep(url: string, text: string): void {
    const [, , destination = null] = url.split('/');
    for (const line of text.split('\n').slice(0, -1)) {
      const { id, body } = parseLine(JSON.parse(line));
      this.arrived.push({
        id,
        destination: destination === null ? null : decodeURIComponent(destination),
        body: Buffer.from(body, 'base64'),
      });
    }
  }
}

function parseLine(value: { id: string; body: string }): { id: string; body: string } {
  return value;
}

async function makeSink(options: object = {}) {
  const endpoint = new Endpoint();
  const url = await endpoint.listen();
  const sink = module.createSink(module.parseOptions({ url, ...options }), makeContext());
  return { endpoint, sink };
}

describe('own-sink.js: the sink contract', async () => {
  await runContract(async () => {
    const { endpoint, sink } = await makeSink();
    return {
      sink,
      destinations: ['meals', 'a/b c'],
      arrived: async () => endpoint.arrived,
      outage: {
        begin: async () => void (endpoint.answer = { status: 503 }),
        end: async () => void (endpoint.answer = { status: 200 }),
      },
      dispose: () => endpoint.close(),
    };
  });
});

describe('own-sink.js', () => {
  it.each([
    [429, { 'retry-after': '7' }, { status: 'retry', sink: true, delayMs: 7000 }],
    [500, {}, { status: 'retry', sink: true }],
    [401, {}, { status: 'retry', sink: true }],
    [400, {}, { status: 'refused', code: 'http_400', batch: true }],
  ])('maps %d', async (status, headers, expected) => {
    const { endpoint, sink } = await makeSink({ token: 'secret' });
    onTestFinished(() => endpoint.close());
    endpoint.answer = { status, headers };
    await sink.open(signal);
    const [first, second] = await sink.send(deliver(1, 2), signal);
    expect(first).toMatchObject(expected);
    expect(second).toEqual(first);
    expect(endpoint.requests[0]?.headers.authorization).toBe('Bearer secret');
    await sink.close(signal);
  });

  it.each([
    [{}, 'url'],
    [{ url: 'nowhere' }, 'url'],
    [{ url: 'http://x', token: 1 }, 'token'],
    [{ url: 'http://x', tokn: 'x' }, 'tokn: unknown key'],
  ])('names the key that is wrong: %j', (options, key) => {
    expect(() => module.parseOptions(options)).toThrow(key);
  });
});
