import { expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { deliver, heldJournal, RawClient, start, wholeRequest } from './support.ts';

async function connected(port: number): Promise<RawClient> {
  const client = new RawClient(port);
  await new Promise<void>((resolve) => client.socket.once('connect', () => resolve()));
  return client;
}

it('a new connection takes the place of the one idle for longest, and the others stay', async () => {
  const { port, receiver } = await start({ limits: { maxConnections: 3 } });
  const first = await connected(port);
  await until('one connection', () => receiver.connections.open === 1);
  const second = await connected(port);
  await until('two connections', () => receiver.connections.open === 2);
  const third = await connected(port);
  await until('three connections', () => receiver.connections.open === 3);
  // The first is used: now the second has been idle for longest.
  first.socket.write(wholeRequest());
  await first.until(/accepted/);
  const fourth = await connected(port);
  fourth.socket.write(wholeRequest());
  await fourth.until(/accepted/);
  await second.closed;
  expect(first.socket.destroyed || third.socket.destroyed).toBe(false);
  expect(receiver.connections).toMatchObject({ open: 3, max: 3, evicted: 1, dropped: 0 });
  third.socket.write(wholeRequest());
  await third.until(/accepted/);
  for (const client of [first, third, fourth]) client.socket.destroy();
  await until('no connection', () => receiver.connections.open === 0);
});

it('no connection with a request in flight is closed for a new one; the new one is, and counted', async () => {
  const { release, ingest } = heldJournal();
  const { port, receiver } = await start({ limits: { maxConnections: 2 }, ingest });
  const busy = [await connected(port), await connected(port)];
  // One of them sends its next before the answer.
  for (const client of busy) client.socket.write(wholeRequest().repeat(2));
  await until('deliveries in flight', () => receiver.inFlight >= 2);
  const late = await connected(port);
  await late.closed;
  expect(late.text).toBe('');
  expect(receiver.connections).toMatchObject({ open: 2, evicted: 0, dropped: 1 });
  release();
  for (const client of busy) await client.until(/accepted[^]*accepted/);
  // They are idle now.
  expect((await deliver(`http://127.0.0.1:${port}/webhooks`)).status).toBe(202);
  expect(receiver.connections).toMatchObject({ evicted: 1, dropped: 1 });
});
