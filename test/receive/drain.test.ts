import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { ManualClock, MINUTE } from '../support/manual-clock.ts';
import { deliver, heldJournal, RawClient, start, type Started, wholeRequest } from './support.ts';

/** A receiver whose journal waits until it is released. */
async function startHeld(
  clock?: ManualClock,
): Promise<Started & { held: Promise<void>; release: () => void }> {
  const { held, release, ...journal } = heldJournal();
  const started = await start({
    ...(clock && { clock }),
    ...journal,
  });
  return { ...started, held, release };
}

const never = new AbortController().signal;

describe('draining', () => {
  it('fault 9: answers what is running, refuses what is new, and ends', async () => {
    const { receiver, url, port, held, release } = await startHeld();
    expect([receiver.state, receiver.ready]).toEqual(['listening', true]);
    const waiting = new RawClient(port);
    await once(waiting.socket, 'connect');
    const running = deliver(url);
    await held;
    expect(receiver.inFlight).toBe(1);

    const drained = receiver.drain(never);
    expect([receiver.state, receiver.ready]).toEqual(['draining', false]);
    waiting.socket.write(wholeRequest());
    await waiting.closed;
    expect(waiting.status).toBe(503);
    expect(waiting.text).toMatch(/retry-after: \d+\r\n/i);
    expect(waiting.text).toMatch(/connection: close/i);
    expect(waiting.text).toContain('shutting_down');
    await expect(fetch(url)).rejects.toThrow('fetch failed');

    release();
    const answer = await running;
    expect(answer).toMatchObject({ status: 202 });
    expect(answer.headers.get('connection')).toBe('close');
    await drained;
    await receiver.close();
    expect([receiver.state, receiver.inFlight]).toEqual(['closed', 0]);
  });

  it('fault 10: waits no longer than its signal allows', async () => {
    const { receiver, url, held } = await startHeld();
    const running = deliver(url).catch(() => 'cut');
    await held;
    const deadline = new AbortController();
    const drained = receiver.drain(deadline.signal);
    deadline.abort();
    await drained;
    expect(receiver.inFlight).toBe(1);
    await receiver.close();
    expect(await running).toBe('cut');
  });

  it('has nothing to wait for when nothing runs, and can be asked twice', async () => {
    const { receiver } = await start();
    await receiver.drain(never);
    await receiver.drain(never);
    await receiver.close();
    await receiver.close();
    expect(receiver.state).toBe('closed');
  });

  it('lets no answer wait for a journal that hangs', async () => {
    const clock = new ManualClock(Date.now());
    const { receiver, url, held, release, outcomes } = await startHeld(clock);
    const running = deliver(url);
    await held;
    // The body's time, then the journal's.
    clock.advance(MINUTE);
    const { status, json, headers } = await running;
    expect([status, json['code'], headers.get('retry-after')]).toEqual([503, 'not_confirmed', '10']);
    expect(receiver.inFlight).toBe(0);
    release();
    await receiver.drain(never);
    expect(outcomes).toHaveLength(1);
  });
});
