import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { startHttp } from '../listen.ts';
import type { Server } from '../server.ts';
import { passOn } from './fault-proxy.ts';

/** What the service keeps of a part is a multiple of this, but for the last. */
const UNIT = 256 * 1024;

interface Upload {
  readonly query: URLSearchParams;
  readonly resource: string;
  content: Buffer;
  done: { status: number; content: Buffer } | null;
}

/**
 * Resumable uploads as Google documents them, in front of fake-gcs-server, which takes a question for how far an upload has
 * come for its end. A finished upload is passed on as a plain one, under the same conditions; all else is passed on.
 */
export function startResumable(target: string): Promise<Server> {
  const uploads = new Map<string, Upload>();
  const server = createServer((incoming, outgoing) => {
    handle(target, uploads, incoming, outgoing).catch(() => outgoing.destroy());
  });
  return startHttp(server);
}

const head = (type: string): string => `--part\r\ncontent-type: ${type}\r\n\r\n`;

async function handle(
  target: string,
  uploads: Map<string, Upload>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const url = new URL(incoming.url ?? '', target);
  const query = url.searchParams;
  const body = await buffer(incoming);
  const id = query.get('upload_id');
  if (id === null && query.get('uploadType') === 'resumable') {
    const upload = { query, resource: body.toString(), content: Buffer.alloc(0), done: null };
    const name = randomUUID();
    uploads.set(name, upload);
    // The service's own address, also when a proxy stands before it.
    const location = `${target}${url.pathname}?uploadType=resumable&upload_id=${name}`;
    outgoing.writeHead(200, { location }).end();
    return;
  }
  const upload = id === null ? undefined : uploads.get(id);
  if (id !== null && (upload === undefined || incoming.method === 'DELETE')) {
    uploads.delete(id);
    outgoing.writeHead(upload === undefined ? 404 : 499).end();
    return;
  }
  if (upload !== undefined) {
    await take(target, url.pathname, upload, incoming.headers['content-range'] ?? '', body);
    answer(outgoing, upload);
    return;
  }
  const headers = { ...incoming.headers, 'content-length': String(body.length) };
  const passed = await passOn(target, incoming, headers, body);
  outgoing.writeHead(passed.status, passed.headers).end(passed.content);
}

/** Keeps what continues it; the last byte makes the object. */
async function take(
  target: string,
  path: string,
  upload: Upload,
  range: string,
  body: Buffer,
): Promise<void> {
  const [, first, last, total] = /^bytes (?:\*|(\d+)-(\d+))\/(\d+)$/.exec(range) ?? [];
  if (upload.done !== null || first === undefined || Number(first) > upload.content.length) return;
  const isLast = Number(last) + 1 === Number(total);
  const fresh = body.subarray(upload.content.length - Number(first));
  const kept = isLast ? fresh.length : fresh.length - (fresh.length % UNIT);
  upload.content = Buffer.concat([upload.content, fresh.subarray(0, kept)]);
  if (!isLast) return;
  const query = new URLSearchParams(upload.query);
  query.set('uploadType', 'multipart');
  const whole = [
    `${head('application/json')}${upload.resource}\r\n${head('application/octet-stream')}`,
    '\r\n--part--\r\n',
  ];
  const content = Buffer.concat([Buffer.from(whole[0]!), upload.content, Buffer.from(whole[1]!)]);
  const headers = {
    'content-type': 'multipart/related; boundary=part',
    'content-length': String(content.length),
  };
  const whereTo = { method: 'POST', url: `${path}?${query.toString()}` };
  upload.done = await passOn(target, whereTo, headers, content);
}

function answer(outgoing: ServerResponse, { content, done }: Upload): void {
  if (done !== null)
    outgoing.writeHead(done.status, { 'content-type': 'application/json' }).end(done.content);
  else outgoing.writeHead(308, content.length === 0 ? {} : { range: `bytes=0-${content.length - 1}` }).end();
}
