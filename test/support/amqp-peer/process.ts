import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { startAmqpPeer, type AmqpPeerOptions } from './peer.ts';

/** A peer in a process of its own, so that a benchmark measures the client alone. */
interface PeerProcess extends AsyncDisposable {
  readonly connectionString: string;
  /** Messages a hub has taken so far. */
  taken(hub: string): Promise<number>;
}

export async function forkAmqpPeer(options: Omit<AmqpPeerOptions, 'now'>): Promise<PeerProcess> {
  const child = fork(import.meta.filename, [JSON.stringify(options)]);
  const connectionString = String(await reply(child));
  return {
    connectionString,
    taken: async (hub) => {
      child.send(hub);
      return Number(await reply(child));
    },
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}

async function reply(child: ChildProcess): Promise<unknown> {
  const [message] = (await once(child, 'message')) as unknown[];
  return message;
}

if (import.meta.main) {
  const peer = await startAmqpPeer(JSON.parse(process.argv[2] ?? '{}') as AmqpPeerOptions);
  process.on('message', (hub) => process.send?.(peer.taken(String(hub)).count));
  process.on('disconnect', () => void peer.stop());
  process.send?.(peer.connectionString);
}
