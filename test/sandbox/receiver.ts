import type { IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { serve } from '../support/listen.ts';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly event: Readonly<Record<string, unknown>>;
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** What it answers from now on. */
  answer: { status: number; headers?: Record<string, string> };
}

/** An endpoint for webhooks that keeps what it gets. */
export async function startReceiver(): Promise<Receiver> {
  const receiver: { -readonly [Key in keyof Receiver]: Receiver[Key] } = {
    url: '',
    received: [],
    answer: { status: 204 },
  };
  const url = await serve((request, response) => {
    void buffer(request).then((body) => {
      const event = JSON.parse(body.toString()) as Received['event'];
      receiver.received.push({ headers: request.headers, body, event });
      response.writeHead(receiver.answer.status, receiver.answer.headers).end();
    });
  });
  receiver.url = `${url}/hooks`;
  return receiver;
}
