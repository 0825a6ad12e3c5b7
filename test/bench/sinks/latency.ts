import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import { madeUpEvent } from '../../../src/sandbox/made-up-events.ts';
import { startAmqpPeer } from '../../support/amqp-peer/peer.ts';
import { postSigned } from '../../support/signed-events.ts';
import type { BenchContext } from '../bench.ts';
import { ReceiverProcess } from '../ingest/children.ts';

const CONNECTIONS = 32;

/**
 * From the moment an event was due to be posted until the broker had it, at a steady rate: the whole way through a
 * receiver in a process of its own, in milliseconds, sorted.
 */
export async function endToEnd(
  perSecond: number,
  seconds: number,
  { folder, atEnd }: BenchContext,
): Promise<number[]> {
  const peer = await startAmqpPeer({ hubs: ['events'], now: clock });
  atEnd(() => peer.stop());
  const hubs = { type: 'event-hubs', connectionString: peer.connectionString, hub: 'events' };
  const routes = [{ match: '*', to: 'hubs' }];
  const receiver = await ReceiverProcess.start(join(folder, 'latency'), {
    config: { sinks: { hubs }, routes },
  });
  atEnd(() => receiver.kill('SIGKILL'));
  const { url } = receiver;
  const dispatcher = new Pool(new URL(url).origin, { connections: CONNECTIONS });
  const due = new Map<string, number>();
  const posts: Promise<void>[] = [];
  const post = async (id: string, body: Buffer): Promise<void> => {
    const { status } = await postSigned(url, body, { id, dispatcher });
    if (status !== 202) throw new Error(`${id} was answered ${status}`);
  };
  const total = perSecond * seconds;
  const began = clock();
  for (let n = 0; n < total;) {
    for (; n < total && n < ((clock() - began) / 1000) * perSecond; n += 1) {
      const { id, body } = madeUpEvent(n);
      due.set(id, began + (n / perSecond) * 1000);
      posts.push(post(id, body));
    }
    await wait(1);
  }
  await Promise.all(posts);
  await peer.received('events', total);
  await dispatcher.close();
  await receiver.end();
  return peer
    .messages('events')
    .map(({ properties, enqueuedAt }) => enqueuedAt - (due.get(properties['idempotency-key'] ?? '') ?? 0))
    .slice(perSecond)
    .toSorted((a, b) => a - b);
}

function clock(): number {
  return performance.timeOrigin + performance.now();
}
