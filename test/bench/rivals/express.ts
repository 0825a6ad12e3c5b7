import express from 'express';
import { announce, PATH } from './announce.ts';

// A handler that reads the body and answers. It checks and keeps nothing.

const app = express();
app.post(PATH, (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    response.status(202).json({ status: 'accepted', bytes: body.length });
  });
});
announce(app.listen(0, '127.0.0.1'));
