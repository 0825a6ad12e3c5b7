import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ManualClock, MINUTE, SECOND } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { deliver, EVENT, head, RawClient, signed, start } from './support.ts';

const HEAD = (): string => head({ ...signed(EVENT), 'content-length': EVENT.length });

describe('a slow sender', () => {
  it('fault 22: of headers is cut off, and others are served during that time', async () => {
    const { url, port } = await start({ limits: { headersTimeout: 200, checkInterval: 20 } });
    const slow = new RawClient(port);
    slow.socket.write('POST /webhooks HTTP/1.1\r\nhost: x\r\n');
    expect((await deliver(url)).status).toBe(202);
    await slow.closed;
    expect(slow.status).toBe(408);
  });

  it('fault 22: of a body is answered 408 at the deadline, and others are served during that time', async () => {
    const clock = new ManualClock(Date.now());
    const { url, port, accepted, nextOutcome } = await start({ clock });
    const slow = new RawClient(port);
    slow.socket.write(HEAD() + EVENT.toString().slice(0, 20));
    expect((await deliver(url)).status).toBe(202);
    await nextOutcome();
    clock.advance(MINUTE);
    expect(await nextOutcome()).toMatchObject({ code: 'too_slow' });
    await slow.closed;
    expect(slow.status).toBe(408);
    expect(accepted).toHaveLength(1);
  });

  it('is not one whose whole body waits here to be decompressed', async () => {
    const clock = new (class extends ManualClock {
      override monotonic = (): number => performance.now();
    })(Date.now());
    const { receiver, port } = await start({ clock, limits: { unverifiedBytes: 1024 * 1024 } });
    // Large enough to wait for their turn, small enough to come in one piece.
    const padding = randomBytes(8192).toString('hex') + 'x'.repeat(600_000);
    const large = Buffer.from(EVENT.toString().replace(/\}\s*$/, `,"padding":"${padding}"}`));
    const sent = gzipSync(large);
    const send = (): RawClient => {
      const more = { 'content-encoding': 'gzip', 'content-length': sent.length, connection: 'close' };
      const client = new RawClient(port);
      client.socket.write(Buffer.concat([Buffer.from(head({ ...signed(large), ...more })), sent]));
      return client;
    };
    let isWaiting = false;
    // On a busy machine they may come no faster than they are decompressed.
    for (let tries = 0; tries < 20 && !isWaiting; tries += 1) {
      const clients = Array.from({ length: 12 }, send);
      const isDone = (): boolean => clients.every(({ status }) => status > 0);
      await until('bodies to wait, or answers', () => isDone() || receiver.decompressing > 0);
      isWaiting = receiver.decompressing > 0;
      // Longer than a body may take, and not so long as an answer may.
      clock.advance(9 * SECOND);
      await Promise.all(clients.map(({ closed }) => closed));
      expect(clients.map(({ status }) => status)).toEqual(clients.map(() => 202));
    }
    expect(isWaiting).toBe(true);
  });

  it('fault 22: of a body gives back the memory that its bytes took', async () => {
    const clock = new ManualClock(Date.now());
    // Room for one event, with what a piece takes beside its bytes.
    const { url, port, nextOutcome } = await start({
      clock,
      limits: { maxBufferedBytes: EVENT.length + 256 },
    });
    const slow = new RawClient(port);
    slow.socket.write(HEAD() + EVENT.toString().slice(0, 20));
    while ((await deliver(url)).status !== 503)
      expect(await nextOutcome()).toMatchObject({ kind: 'accepted' });
    expect(await nextOutcome()).toMatchObject({ code: 'overloaded' });
    clock.advance(MINUTE);
    expect(await nextOutcome()).toMatchObject({ code: 'too_slow' });
    expect((await deliver(url)).status).toBe(202);
    await slow.closed;
    expect(slow.status).toBe(408);
    expect((await deliver(url)).status).toBe(202);
  });

  it('fault 22: who never closes its side is destroyed after a while', async () => {
    const clock = new ManualClock(Date.now());
    const { port, nextOutcome } = await start({ clock });
    const slow = new RawClient(port);
    slow.keepOpen();
    slow.socket.write(head({ ...signed(EVENT), 'content-length': 50_000_000 }));
    expect(await nextOutcome()).toMatchObject({ code: 'body_too_large' });
    await slow.ended;
    expect(clock.pending).toBe(1);
    clock.advance(MINUTE);
    // Writing shows whether anybody is there: a closed peer answers with a reset.
    const write = (): void => {
      slow.socket.write('x', (error) => (error ? undefined : setImmediate(write)));
    };
    write();
    await slow.closed;
    expect(slow.status).toBe(413);
  });
});

describe('a sender that lies or leaves', () => {
  it('fault 23: in the middle of a body leaves nothing behind', async () => {
    const { url, port, receiver, accepted, quarantined, nextOutcome } = await start();
    for (const leave of ['destroy', 'resetAndDestroy'] as const) {
      const client = new RawClient(port);
      client.socket.write(HEAD() + EVENT.toString().slice(0, 20), () => client.socket[leave]());
      expect(await nextOutcome()).toEqual({ kind: 'gone' });
    }
    const halfClosed = new RawClient(port);
    halfClosed.socket.end(HEAD() + EVENT.toString().slice(0, 20));
    expect(await nextOutcome()).toEqual({ kind: 'gone' });
    await halfClosed.closed;
    expect(receiver.inFlight).toBe(0);
    expect([...accepted, ...quarantined]).toEqual([]);
    expect((await deliver(url)).status).toBe(202);
  });

  it('fault 21: about Content-Length, saying less than it sends, is refused', async () => {
    const { port, accepted } = await start();
    const client = new RawClient(port);
    client.socket.write(head({ ...signed(EVENT), 'content-length': 10 }) + EVENT.toString());
    await client.closed;
    expect(client.text).toMatch(/ 401 | 400 /);
    expect(accepted).toEqual([]);
  });

  it('fault 21: about Content-Length, saying more than it sends, is cut off at the deadline', async () => {
    const { port, accepted } = await start({ limits: { bodyTimeout: 100, lingerTimeout: 20 } });
    const client = new RawClient(port);
    client.socket.write(head({ ...signed(EVENT), 'content-length': EVENT.length + 10 }) + EVENT.toString());
    await client.closed;
    expect(client.status).toBe(408);
    expect(accepted).toEqual([]);
  });

  it('fault 21: about Content-Length, twice or no number or beside chunks, is refused', async () => {
    const { port, accepted } = await start();
    for (const lie of ['content-length: 5\r\ncontent-length: 6', 'content-length: -1', 'content-length: x']) {
      const client = new RawClient(port);
      client.socket.write(`POST /webhooks HTTP/1.1\r\nhost: x\r\n${lie}\r\n\r\n`);
      await client.closed;
      expect(client.status).toBe(400);
    }
    const smuggler = new RawClient(port);
    smuggler.socket.write(head({ 'content-length': 5, 'transfer-encoding': 'chunked' }));
    await smuggler.closed;
    expect(smuggler.status).toBe(400);
    expect(accepted).toEqual([]);
  });

  it('with too many headers is refused', async () => {
    const { port } = await start({ limits: { maxHeaderBytes: 4096 } });
    const client = new RawClient(port);
    client.socket.write(head({ 'x-long': 'x'.repeat(5000) }));
    await client.closed;
    expect(client.status).toBe(431);
  });
});
