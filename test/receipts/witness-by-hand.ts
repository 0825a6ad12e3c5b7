import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A witness of which each answer is made by hand. */
export async function witnessBy(
  name: string,
  answer: (
    line: (note: string, signed?: string) => string,
    body: string,
  ) => [number, string] | null | Promise<[number, string] | null>,
) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const typed = Buffer.concat([
    Buffer.of(4),
    publicKey.export({ type: 'spki', format: 'der' }).subarray(-32),
  ]);
  const id = createHash('sha256').update(`${name}\n`).update(typed).digest().subarray(0, 4);
  const line = (note: string, signed = note.slice(0, note.indexOf('\n\n') + 1)): string => {
    const time = Buffer.from('00000000654e0a00', 'hex');
    const text = `cosignature/v1\ntime ${time.readBigUInt64BE()}\n${signed}`;
    const bytes = Buffer.concat([id, time, sign(null, Buffer.from(text), privateKey)]);
    return `— ${name} ${bytes.toString('base64')}\n`;
  };
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      void Promise.resolve(answer(line, body.slice(body.indexOf('\n\n') + 2))).then((given) => {
        if (given !== null) response.writeHead(given[0]).end(given[1]);
      });
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { line, text: `http://127.0.0.1:${port} ${name}+${id.toString('hex')}+${typed.toString('base64')}` };
}
