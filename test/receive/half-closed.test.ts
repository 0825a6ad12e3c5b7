import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { head, heldJournal, RawClient, start, wholeRequest } from './support.ts';

describe('a sender that closes its side after its request', () => {
  it('fault 55: is answered, to each of its requests, and its connection is closed', async () => {
    const { port, receiver, accepted } = await start();
    for (const times of [1, 2]) {
      const client = new RawClient(port);
      client.socket.end(wholeRequest().repeat(times));
      await client.closed;
      expect(client.text.match(/HTTP\/1\.1 20\d/g)).toHaveLength(times);
    }
    expect(accepted).toHaveLength(2);
    await until('no connection', () => receiver.connections.open === 0);
  });

  it('fault 55: is answered when the journal takes its time, and when it is refused', async () => {
    const { release, ingest } = heldJournal();
    const { port, receiver } = await start({ ingest });
    const client = new RawClient(port);
    client.socket.end(wholeRequest());
    await until('a delivery in flight', () => receiver.inFlight === 1);
    const refused = new RawClient(port);
    refused.socket.end(head({ 'content-length': 2 }) + '{}');
    await refused.closed;
    expect(refused.status).toBe(401);
    release();
    await client.closed;
    expect(client.status).toBe(202);
    await until('no connection', () => receiver.connections.open === 0);
  });

  it('fault 55: leaves nothing behind without a whole request', async () => {
    const { port, receiver, accepted } = await start();
    for (const part of ['', 'POST /web', wholeRequest().slice(0, -5)]) {
      const client = new RawClient(port);
      client.socket.end(part);
      await client.closed;
      expect(client.text).not.toContain('accepted');
    }
    expect(accepted).toEqual([]);
    await until('no connection', () => receiver.connections.open === 0);
    expect(receiver.inFlight).toBe(0);
  });
});
