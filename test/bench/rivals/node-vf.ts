import { createServer } from 'node:http';
import { announce, PATH } from './announce.ts';
import { VerifyAndFile } from './vf.ts';

const [, , file = ''] = process.argv;
const handler = new VerifyAndFile(process.env['RIVAL_SECRET'] ?? '', file);

announce(
  createServer((request, response) => {
    if (request.method !== 'POST' || request.url !== PATH) {
      response.writeHead(404).end();
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const [only] = chunks;
      const body = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
      handler.take(request.headers, body, ({ status, text }) => {
        response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length });
        response.end(text);
      });
    });
  }).listen(0, '127.0.0.1'),
);
