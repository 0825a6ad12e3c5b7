import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startEndpoint } from '../sinks/http-support.ts';
import { millrace, millraceProcess } from '../support/millrace.ts';
import { Place, saying } from '../support/place.ts';
import { until } from '../support/until.ts';

const EVENTS = 20;

/** A journal that a killed receiver has left behind, with events for a target that was down. */
async function stranded() {
  const target = await startEndpoint();
  const place = await Place.make((folder) => ({
    delivery: { retryInitial: '50ms', retryMax: '200ms' },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      target: { type: 'http', url: target.url('/'), sign: 'none', privateNetworks: ['127.0.0.1'] },
    },
  }));
  await target.stop();
  const receiver = await place.startProcess();
  const sent = await receiver.send(EVENTS, 0, 'daily.data.meal.created');
  await receiver.kill('SIGKILL');
  const args = ['drain', '--journal', place.at('journal'), '--config', place.config];
  return { args, place, target, ids: [...sent.keys()] };
}

test('a drain delivers what a replica that is gone has left, in several goes, and one at a time', async () => {
  const { args, place, target, ids } = await stranded();
  const early = await millrace([...args, '--timeout', '300ms', '--json']);
  expect(early.code).toBe(3);
  expect(JSON.parse(early.stdout)).toMatchObject({ ok: false, waiting: { target: EVENTS } });

  // One that only looks can come first, and then the drain is the one to be refused.
  let first: ReturnType<typeof millraceProcess>;
  let second: Awaited<ReturnType<typeof millrace>> | null;
  do {
    first = millraceProcess(args);
    const refused = first.then(({ code: ended }) => ended === 2);
    second = await until('a second drain to be refused', async () => {
      const ended = await millrace([...args, '--timeout', '1ms']);
      // Who holds it is written down a moment later.
      if (/journal is held by process \d+/.test(ended.stderr)) return { ended };
      return (await Promise.race([refused, Promise.resolve(false)])) && { ended: null };
    }).then(({ ended }) => ended);
  } while (second === null);
  expect(second.code).toBe(2);
  // A receiver does not start on it either.
  expect((await place.run('serve')).code).toBe(1);

  await target.start();
  expect(await first).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`delivered  ${EVENTS} to target`),
    stderr: expect.stringContaining('the journal is empty'),
  });
  expect(target.ids().toSorted()).toEqual(ids.toSorted());
  expect((await millrace([...args, '--json'])).code).toBe(0);
});

test('it stops at a signal and says that something is left; dead letters are something', async () => {
  const { args, target } = await stranded();
  // Those that only look can come first, and then the drain is the one to be refused.
  for (let code: number | null = 2; code === 2;) {
    const stop = new AbortController();
    const stopped = millrace(args, { signal: stop.signal });
    let isOver = false;
    void stopped.then(() => (isOver = true));
    await until(
      'it to own the journal',
      async () => isOver || (await millrace([...args, '--timeout', '1ms'])).code === 2,
    );
    stop.abort();
    code = (await stopped).code;
    expect([2, 3]).toContain(code);
  }
  target.reply = () => 422;
  await target.start();
  expect(await millrace(args)).toMatchObject({
    code: 3,
    stdout: expect.stringContaining(`left       ${EVENTS} dead letters`),
    stderr: expect.stringContaining('keep it'),
  });
});

test('a journal that is not there is not made', async () => {
  const place = await Place.make();
  const nowhere = place.at('nowhere');
  const ended = await place.run('drain', '--journal', nowhere);
  expect(ended).toMatchObject(saying(1, nowhere));
  expect(existsSync(nowhere)).toBe(false);
});
