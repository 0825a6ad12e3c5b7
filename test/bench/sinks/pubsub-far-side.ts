import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';

/** Of a gRPC frame: a byte of flags and the length of what follows. */
const FRAME_HEAD = 5;
/** Nothing waits for the far side to open its window. */
const WINDOW = 64 * 2 ** 20;

/** Takes publish requests, counts their messages and stores nothing: the emulator would be busier than who sends to it. */
export interface FarSide extends AsyncDisposable {
  readonly endpoint: string;
  /** Messages taken so far. */
  taken(): Promise<number>;
}

/** In a process of its own, so that only the client is measured. */
export async function forkPubSubFarSide(): Promise<FarSide> {
  const child = fork(import.meta.filename);
  const endpoint = `127.0.0.1:${String(await reply(child))}`;
  return {
    endpoint,
    taken: async () => {
      child.send('taken');
      return Number(await reply(child));
    },
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    },
  };
}

async function reply(child: ChildProcess): Promise<unknown> {
  const [message] = (await once(child, 'message')) as unknown[];
  return message;
}

/** Entries of the repeated field 2 of a PublishRequest; whatever else it holds has a length too. */
function countMessages(request: Buffer): number {
  let count = 0;
  for (let at = 0; at < request.length;) {
    if (request[at] === 0x12) count += 1;
    let length = 0;
    let shift = 0;
    for (at += 1; ; at += 1, shift += 7) {
      const byte = request[at] ?? 0;
      length += (byte & 127) * 2 ** shift;
      if (byte < 128) break;
    }
    at += 1 + length;
  }
  return count;
}

/** A gRPC frame with a PublishResponse of so many ids; with none it is any empty answer. */
function answerTo(count: number): Buffer {
  const frame = Buffer.alloc(FRAME_HEAD + 3 * count);
  frame.writeUInt32BE(3 * count, 1);
  for (let at = FRAME_HEAD; at < frame.length; at += 3) frame.set([0x0a, 1, 0x31], at);
  return frame;
}

function serve(onTaken: (count: number) => void): ReturnType<typeof createServer> {
  const server = createServer({ settings: { initialWindowSize: WINDOW, maxFrameSize: 2 ** 20 } });
  server.on('session', (session) => session.setLocalWindowSize(WINDOW));
  server.on('stream', (stream: ServerHttp2Stream) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      const count = countMessages(Buffer.concat(chunks).subarray(FRAME_HEAD));
      onTaken(count);
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(answerTo(count));
    });
    stream.on('error', () => undefined);
  });
  return server;
}

if (import.meta.main) {
  let taken = 0;
  const server = serve((count) => (taken += count));
  process.on('message', () => process.send?.(taken));
  process.on('disconnect', () => process.exit());
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}
