import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { startAmqpPeer } from '../../support/amqp-peer/peer.ts';
import { endChild } from '../../support/child-server.ts';

/** Of a gRPC frame: a byte of flags and the length of what follows. */
const FRAME_HEAD = 5;
/** Nothing waits for the far side to open its window. */
const WINDOW = 64 * 2 ** 20;

/** Counts the messages that it takes, and stores none. */
interface FarSide extends AsyncDisposable {
  /** What clients connect to: a connection string, or an endpoint. */
  readonly address: string;
  /** Messages taken so far. */
  taken(): Promise<number>;
}

/** In a process of its own, so that only the client is measured. */
export async function forkFarSide(of: 'event-hubs' | 'pubsub'): Promise<FarSide> {
  const child = fork(import.meta.filename, [of]);
  const reply = async (): Promise<unknown> => ((await once(child, 'message')) as unknown[])[0];
  const address = String(await reply());
  return {
    address,
    taken: async () => {
      child.send('taken');
      return Number(await reply());
    },
    [Symbol.asyncDispose]: () => endChild(child),
  };
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

/** The AMQP peer of the tests. */
async function serveEventHubs(): Promise<() => number> {
  const peer = await startAmqpPeer({ hubs: ['events'], keep: false });
  process.send?.(peer.connectionString);
  return () => peer.taken('events').count;
}

/** No more than a count of messages: the emulator would be busier than who sends to it. */
function servePubSub(): () => number {
  let taken = 0;
  const server = serve((count) => (taken += count));
  server.listen(0, '127.0.0.1', () => process.send?.(`127.0.0.1:${(server.address() as AddressInfo).port}`));
  return () => taken;
}

if (import.meta.main) {
  const taken = process.argv[2] === 'pubsub' ? servePubSub() : await serveEventHubs();
  process.on('message', () => process.send?.(taken()));
  process.on('disconnect', () => process.exit());
}
