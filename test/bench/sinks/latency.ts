import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import { madeUpEvent } from '../../../src/sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../../src/verify/sign-standard-webhooks.ts';
import { startAmqpPeer } from '../../support/amqp-peer/peer.ts';
import { MAIN } from '../../support/millrace.ts';
import { SECRET } from '../../support/signed-events.ts';

const CONNECTIONS = 32;

/**
 * From the moment an event was due to be posted until the broker had it, at a steady rate: the whole way through a
 * receiver in a process of its own, in milliseconds, sorted.
 */
export async function endToEnd(perSecond: number, seconds: number): Promise<number[]> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  const peer = await startAmqpPeer({ hubs: ['events'], now: clock });
  const config = join(folder, 'millrace.yaml');
  await writeFile(
    config,
    JSON.stringify({
      server: { host: '127.0.0.1', port: 0 },
      admin: { enabled: false },
      signing: { secrets: [SECRET] },
      journal: { path: join(folder, 'journal') },
      sinks: { hubs: { type: 'event-hubs', connectionString: peer.connectionString, hub: 'events' } },
    }),
  );
  const receiver = spawn(process.execPath, [MAIN, 'serve', '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    const url = await listening(receiver.stderr);
    const pool = new Pool(new URL(url).origin, { connections: CONNECTIONS });
    const due = new Map<string, number>();
    const posts: Promise<void>[] = [];
    const total = perSecond * seconds;
    const began = clock();
    for (let n = 0; n < total;) {
      for (; n < total && n < ((clock() - began) / 1000) * perSecond; n += 1) {
        const { id, body } = madeUpEvent(n);
        due.set(id, began + (n / perSecond) * 1000);
        posts.push(post(pool, url, id, body));
      }
      await wait(1);
    }
    await Promise.all(posts);
    await peer.received('events', total);
    await pool.close();
    return peer
      .messages('events')
      .map(({ properties, enqueuedAt }) => enqueuedAt - (due.get(properties['idempotency-key'] ?? '') ?? 0))
      .slice(perSecond)
      .toSorted((a, b) => a - b);
  } finally {
    const exited = once(receiver, 'exit');
    receiver.kill('SIGTERM');
    await exited;
    await peer.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function post(pool: Pool, url: string, id: string, body: Buffer): Promise<void> {
  const { statusCode, body: answer } = await pool.request({
    path: new URL(url).pathname,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...signStandardWebhooks(SECRET, id, Date.now(), body) },
    body,
  });
  await answer.dump();
  if (statusCode !== 202) throw new Error(`${id} was answered ${statusCode}`);
}

async function listening(stderr: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(stderr)) {
    const { msg, url } = JSON.parse(line) as { msg: string; url: string };
    if (msg === 'listening') {
      stderr.resume();
      return url;
    }
  }
  throw new Error('the receiver ended before it listened');
}

function clock(): number {
  return performance.timeOrigin + performance.now();
}
