import express from 'express';
import { PATH } from './requests.ts';

// What the receiver is held against: an express handler that reads the body and answers. It checks and keeps nothing.

const app = express();
app.post(PATH, (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    response.status(202).json({ status: 'accepted', bytes: body.length });
  });
});
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit());
