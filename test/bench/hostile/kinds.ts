import { randomBytes } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { PATH } from '../rivals/vf.ts';

/** One way to attack an endpoint without a secret. */
export interface Kind {
  readonly name: string;
  /** Whole requests, as many as there are to choose from; null for a connection that says nothing. */
  readonly requests: readonly Buffer[] | null;
  /** Whether it costs its sender little, so that there is a target for what it costs us. */
  readonly isCheap: boolean;
  /** Whether the answer leaves the connection open, so that the next request goes over the same one. */
  readonly keepsAlive: boolean;
}

const BOMB = Buffer.alloc(64 * 1024 * 1024);
const VARIANTS = 16;

/** What the others are measured against: those whose answer closes the connection against the second. */
export const PLAIN = 'plain 401';
export const PLAIN_ALONE = 'plain 401, a connection each';

export function makeKinds(): readonly Kind[] {
  const meal = Buffer.from(`{"event_type":"daily.data.meal.created","note":"${'x'.repeat(1140)}"}`);
  const brotli = brotliCompressSync(BOMB, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } });
  const gzip = gzipSync(BOMB).subarray(0, 1000);
  const large = gzipSync(manyRows(1024 * 1024));
  const zstd = zstdCompressSync(BOMB);
  const chunks = Buffer.from('1\r\n \r\n'.repeat(4090) + '0\r\n\r\n');
  const chunked = { 'transfer-encoding': 'chunked' };
  return [
    kind(PLAIN, true, () => request({}, meal)),
    kind(PLAIN_ALONE, false, () => request({ connection: 'close' }, meal)),
    kind('brotli bomb, unsigned', true, () => request({ 'content-encoding': 'br' }, brotli)),
    kind('brotli bomb, forged v1', true, () => request({ ...v1(), 'content-encoding': 'br' }, brotli)),
    kind('gzip bomb, forged v1', true, () => request({ ...v1(), 'content-encoding': 'gzip' }, gzip)),
    kind('zstd bomb, forged v1', true, () => request({ ...v1(), 'content-encoding': 'zstd' }, zstd)),
    kind('gzip of 1 MiB, forged v1', true, () => request({ ...v1(), 'content-encoding': 'gzip' }, large)),
    kind('16 forged v1a', true, () => request(v1a(), meal)),
    kind('16 forged v1a over 60 KiB in brotli', true, () =>
      request({ ...v1a(), 'content-encoding': 'br' }, brotliCompressSync(Buffer.alloc(60 * 1024))),
    ),
    kind('4,090 chunks of a byte, unsigned', false, () => request(chunked, chunks)),
    kind('4,090 chunks of a byte, forged v1', false, () => request({ ...v1(), ...chunked }, chunks)),
    {
      ...kind('1 MiB, forged v1', false, () => request(v1(), Buffer.alloc(1024 * 1024, 0x20))),
      isCheap: false,
    },
    { name: 'idle connection', requests: null, keepsAlive: false, isCheap: true },
  ];
}

/** Text that compresses about as much as bodies may. */
function manyRows(bytes: number): Buffer {
  let text = '[';
  for (let n = 0; text.length < bytes; n += 1)
    text += `{"at":${n},"value":70,"unit":"bpm","note":"made up"},`;
  return Buffer.from(text);
}

function kind(name: string, keepsAlive: boolean, make: () => Buffer): Kind {
  return { name, keepsAlive, isCheap: true, requests: Array.from({ length: VARIANTS }, make) };
}

function v1(): Record<string, string> {
  return claim(`v1,${randomBytes(32).toString('base64')}`);
}

function v1a(): Record<string, string> {
  return claim(Array.from({ length: 16 }, ed25519).join(' '));
}

/** Of random points and scalars most are thrown away before any work is done; this one is not. */
function ed25519(): string {
  const bytes = randomBytes(64);
  bytes[63] = 0;
  return `v1a,${bytes.toString('base64')}`;
}

function claim(signature: string): Record<string, string> {
  return {
    'webhook-id': `made-up-${randomBytes(8).toString('hex')}`,
    'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
    'webhook-signature': signature,
  };
}

function request(headers: Record<string, string>, body: Buffer): Buffer {
  const length = headers['transfer-encoding'] === undefined ? { 'content-length': String(body.length) } : {};
  const all = { host: '127.0.0.1', 'content-type': 'application/json', ...headers, ...length };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${PATH} HTTP/1.1\r\n${lines.join('')}\r\n`), body]);
}
