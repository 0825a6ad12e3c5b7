import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { lacksMount, mountTmpfs } from '../support/mounts.ts';
import { Place } from '../support/place.ts';
import { skipped } from '../support/requirements.ts';
import { until } from '../support/until.ts';

const lack = lacksMount();
/** About 4 KiB an event: a page of the database holds one, which makes a dead letter twice its event. */
const PADDING = Buffer.alloc(3000, 0x20);

/** A receiver whose journal has a small disk, with all for a target that takes nothing yet. */
async function small() {
  const endpoint = await startEndpoint();
  endpoint.reply = () => 503;
  const far = { type: 'http', url: endpoint.url('/'), sign: 'none', privateNetworks: ['127.0.0.1'] };
  const place = await Place.make((folder) => ({
    journal: { path: join(folder, 'small', 'journal') },
    delivery: { retryInitial: '20ms', retryMax: '100ms' },
    sinks: { far },
  }));
  onTestFinished(mountTmpfs(place.at('small'), '8m'));
  return { endpoint, place, receiver: await place.startProcess() };
}

test.skipIf(lack !== null)(
  `fault 52: a full disk whose events are all refused, and then taken, recovers by itself${skipped(lack)}`,
  async () => {
    const { endpoint, place, receiver } = await small();
    const accepted: string[] = [];
    const post = async (): Promise<number> => {
      const { id, body } = madeUpEvent(accepted.length);
      const { status } = await receiver.post(Buffer.concat([body, PADDING]), { id });
      if (status === 202) accepted.push(id);
      return status;
    };
    /** With a sink that takes nothing. @returns how many events that takes */
    const fill = async (): Promise<number> => {
      endpoint.reply = () => 503;
      const before = accepted.length;
      while ((await post()) === 202) expect(accepted.length).toBeLessThan(20_000);
      return accepted.length - before;
    };
    const deadLetters = async (): Promise<string[]> => {
      const dead = await place.documents('dead-letters', 'list', '--limit', '99999');
      return (dead as { id: string }[]).map(({ id }) => id);
    };

    const room = await fill();
    endpoint.reply = () => 422;
    await until('no more room for dead letters', async () =>
      (await receiver.status()).sinks[0]?.lastError?.includes('Journal is full'),
    );
    // What is looked at is noted in the audit log first.
    const [first = ''] = await until('a dead letter', async () => {
      const found = await deadLetters();
      return found.length > 0 ? found : null;
    });
    expect(await place.ok('dead-letters', 'show', '1')).toContain(first);

    endpoint.reply = () => 204;
    await receiver.drained();
    await until('space, and a 2xx', async () => (await post()) === 202);
    await receiver.drained();
    const dead = await deadLetters();
    expect(dead.length).toBeGreaterThan(20);
    const arrived = (): string[] => [...new Set([...endpoint.ids(), ...dead])].toSorted();
    expect(arrived()).toEqual(accepted.toSorted());

    // What a person drops makes room for events, and not for dead letters only.
    expect(await place.ok('dead-letters', 'drop', '--all')).toBe(`dropped ${dead.length}\n`);
    expect(await fill()).toBeGreaterThan(0.9 * room);
    endpoint.reply = () => 204;
    await receiver.drained();
    await receiver.stop();
    expect(arrived()).toEqual(accepted.toSorted());
  },
);

test.skipIf(lack !== null)(
  `fault 52: a sink can be given up on a full disk, as its dead letters are dropped${skipped(lack)}`,
  async () => {
    const { place, receiver } = await small();
    let accepted = 0;
    for (let next = 0, isFull = false; !isFull;) {
      const answers = Array.from({ length: 16 }, () => {
        const { id, body } = madeUpEvent((next += 1));
        return receiver.post(body, { id });
      });
      for (const { status } of await Promise.all(answers))
        if (status === 202) accepted += 1;
        else isFull = true;
    }
    await receiver.stop();
    place.write({ journal: { path: place.at('small', 'journal') } });
    // Dead letters of all of them would be more than the disk holds: a person drops some in between.
    let inAll = 0;
    for (let isDone = false; !isDone;) {
      const { code, stderr } = await place.run('sink', 'drop', 'far');
      isDone = code === 0;
      if (!isDone) expect(stderr).toMatch(/Journal is full: .* make room on it, or drop dead letters/);
      const dropped = await place.ok('dead-letters', 'drop', '--all');
      const count = Number(/^dropped (\d+)$/m.exec(dropped)?.[1]);
      expect(count).toBeGreaterThan(0);
      inAll += count;
    }
    expect(inAll).toBe(accepted);
  },
);
