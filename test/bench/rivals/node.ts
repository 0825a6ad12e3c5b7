import express from 'express';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { PATH, VerifyAndFile } from './vf.ts';

/** By name: handlers that run in Node, each listening on a free port. */
const SERVERS: Readonly<Record<string, (file: string) => Server>> = {
  /** Reads the body and answers. It checks and keeps nothing. */
  express: () => {
    const app = express();
    app.post(PATH, (request, response) => {
      whole(request, (body) => response.status(202).json({ status: 'accepted', bytes: body.length }));
    });
    return app.listen(0, '127.0.0.1');
  },
  'express-vf': (file) => {
    const handler = new VerifyAndFile(process.env['RIVAL_SECRET'] ?? '', file);
    const app = express();
    // The signature is over the bytes, so express.json() is of no use here.
    app.post(PATH, express.raw({ type: '*/*', limit: '10mb' }), (request, response) => {
      handler.take(request.headers, request.body as Buffer, ({ status, text }) => {
        response.status(status).type('application/json').send(text);
      });
    });
    return app.listen(0, '127.0.0.1');
  },
  'node-vf': (file) => {
    const handler = new VerifyAndFile(process.env['RIVAL_SECRET'] ?? '', file);
    const server = createServer((request, response) => {
      const answer = (status: number, text: string): void => {
        const headers = { 'content-type': 'application/json', 'content-length': text.length };
        response.writeHead(status, headers).end(text);
      };
      if (request.method !== 'POST' || request.url !== PATH) answer(404, '');
      else
        whole(request, (body) =>
          handler.take(request.headers, body, ({ status, text }) => answer(status, text)),
        );
    });
    return server.listen(0, '127.0.0.1');
  },
};

function whole(request: IncomingMessage, take: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const [only] = chunks;
    take(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks));
  });
}

/** Says where it listens, in one line of JSON on stdout, and keeps its connections as the receiver does. */
if (import.meta.main) {
  const [, , name = '', file = ''] = process.argv;
  const server = SERVERS[name]?.(file);
  if (server === undefined) throw new Error(`there is no handler ${name}`);
  server.keepAliveTimeout = 65_000;
  server.once('listening', () => process.stdout.write(`${JSON.stringify(server.address())}\n`));
}
