import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http';
import { buffer } from 'node:stream/consumers';
import { startHttp } from '../listen.ts';
import type { Server } from '../server.ts';

/**
 * What can go wrong with one request:
 * - `429`, `500`, `503`: answered so, and not passed on;
 * - `cut`: the connection ends before the request was passed on; `hang`: it is never answered, nor passed on;
 * - `lost`: passed on, and the connection ends instead of the answer; `mute`: passed on, and never answered;
 * - `half`: half of the answer's body, then the connection ends.
 */
export const FAULTS = ['429', '500', '503', 'cut', 'hang', 'lost', 'mute', 'half'] as const;
/**
 * `403`: what somebody has to see to; trying again does not help. From somebody on the way, and not passed on: `404`, and `page`
 * and `nothing`, which are 200 with a page to sign in, or with an empty body.
 */
export type Fault = (typeof FAULTS)[number] | '403' | '404' | 'page' | 'nothing';

type Choose = (request: IncomingMessage, body: Buffer) => Fault | null | Promise<null>;

export interface FaultProxy extends Server {
  /** Requests so far. */
  readonly requests: number;
  /** Faults so far, by kind. */
  readonly injected: ReadonlyMap<Fault, number>;
  /** Says what happens to each request from now on; null lets it pass. One that is promised waits. */
  inject(choose: Choose): void;
}

/** An HTTP proxy in front of an emulator at `target`, such as `http://127.0.0.1:5000`. */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  let choose: Choose | null = null;
  const injected = new Map<Fault, number>();
  let requests = 0;
  const server = createServer((incoming, outgoing) => {
    requests += 1;
    const decide = async (): Promise<void> => {
      const body = await buffer(incoming);
      const fault = (await choose?.(incoming, body)) ?? null;
      if (fault !== null) injected.set(fault, (injected.get(fault) ?? 0) + 1);
      await handle(target, fault, { incoming, body }, outgoing);
    };
    decide().catch(() => outgoing.destroy());
  });
  // One that ends an idle connection resets a request that is just on its way: a fault that the test did not ask for.
  server.keepAliveTimeout = 0;
  return {
    ...(await startHttp(server)),
    get requests() {
      return requests;
    },
    injected,
    inject: (chosen) => (choose = chosen),
  };
}

/** The object that a request writes, with what stands before its key; null when it writes none. */
export function writtenBy({ method, url = '' }: IncomingMessage, body: Buffer): string | null {
  if (method === 'PUT') return decodeURIComponent(url);
  // Google's name stands in front of the bytes.
  if (method !== 'POST' || !url.startsWith('/upload/')) return null;
  return /"name":"([^"]+)"/.exec(body.toString('latin1', 0, 2000))?.[1] ?? null;
}

async function handle(
  target: string,
  fault: Fault | null,
  { incoming, body }: { readonly incoming: IncomingMessage; readonly body: Buffer },
  outgoing: ServerResponse,
): Promise<void> {
  if (fault === 'cut') return void incoming.socket.destroy();
  if (fault === 'hang') return;
  if (fault === '403' || fault === '404' || fault === '429' || fault === '500' || fault === '503')
    return answer(outgoing, Number(fault));
  if (fault === 'page' || fault === 'nothing')
    return void outgoing
      .writeHead(200, { 'content-type': 'text/html' })
      .end(fault === 'page' ? '<html><body>sign in</body></html>' : '');
  const kept = withLength(incoming.rawHeaders, body);
  const { status, headers, content } = await passOn(target, incoming, kept, body);
  if (fault === 'lost') return void incoming.socket.destroy();
  if (fault === 'mute') return;
  outgoing.writeHead(status, headers);
  if (fault !== 'half') return void outgoing.end(content);
  // All at once would let the end overtake what was written.
  outgoing.write(content.subarray(0, content.length / 2), () => incoming.socket.destroy());
}

function answer(outgoing: ServerResponse, status: number): void {
  const wait: Record<string, string> = status === 500 ? {} : { 'retry-after': '0' };
  outgoing.writeHead(status, { 'content-type': 'text/plain', ...wait }).end('injected');
}

/** To an emulator, whose answer is read to its end. */
export async function passOn(
  target: string,
  { method = 'GET', url: path = '' }: Pick<IncomingMessage, 'method' | 'url'>,
  headers: readonly string[] | OutgoingHttpHeaders,
  body: Buffer,
) {
  const { hostname, port } = new URL(target);
  const answered = Promise.withResolvers<IncomingMessage>();
  const passed = request({ hostname, port, method, path, headers, agent: false }, answered.resolve);
  passed.on('error', answered.reject).end(body);
  const response = await answered.promise;
  const { 'transfer-encoding': _, connection: __, ...given } = response.headers;
  const content = await buffer(response);
  // An answer to HEAD has the length of what it does not hold.
  if (method !== 'HEAD') given['content-length'] = String(content.length);
  return { status: response.statusCode ?? 502, headers: given, content };
}

/** As they came, but for how the body is sent. */
function withLength(raw: readonly string[], body: Buffer): string[] {
  const kept: string[] = [];
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] ?? '').toLowerCase();
    if (['transfer-encoding', 'content-length', 'connection', 'expect'].includes(name)) continue;
    kept.push(raw[index] ?? '', raw[index + 1] ?? '');
  }
  return body.length === 0 && !raw.some((name) => /^(content-length|transfer-encoding)$/i.test(name))
    ? kept
    : [...kept, 'Content-Length', String(body.length)];
}
