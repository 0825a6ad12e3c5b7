import express from 'express';
import { announce, PATH } from './announce.ts';
import { VerifyAndFile } from './vf.ts';

const [, , file = ''] = process.argv;
const handler = new VerifyAndFile(process.env['RIVAL_SECRET'] ?? '', file);

const app = express();
// The signature is over the bytes, so express.json() is of no use here.
app.post(PATH, express.raw({ type: '*/*', limit: '10mb' }), (request, response) => {
  handler.take(request.headers, request.body as Buffer, ({ status, text }) => {
    response.status(status).type('application/json').send(text);
  });
});
announce(app.listen(0, '127.0.0.1'));
