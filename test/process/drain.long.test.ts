import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, millraceProcess, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const EVENTS = 20;

/** A journal that a killed receiver has left behind, with events for a target that was down. */
async function stranded() {
  const folder = await temporaryFolder();
  const target = await startEndpoint();
  const config = writeConfig(folder, {
    delivery: { retryInitial: '50ms', retryMax: '200ms' },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      target: { type: 'http', url: target.url('/'), sign: 'none', privateNetworks: ['127.0.0.1'] },
    },
    routes: [{ match: '*', to: ['archive', 'target'] }],
  });
  await target.stop();
  const receiver = await ReceiverProcess.start(config);
  const { journal } = await receiver.status();
  const ids: string[] = [];
  for (let n = 0; n < EVENTS; n += 1) {
    const { id, body } = madeUpEvent(n, 'daily.data.meal.created');
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    ids.push(id);
  }
  await receiver.kill('SIGKILL');
  const args = ['drain', '--journal', journal.path, '--config', config];
  return { args, config, target, ids };
}

test('a drain delivers what a replica that is gone has left, in several goes, and one at a time', async () => {
  const { args, config, target, ids } = await stranded();
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
      if (ended.code === 2) return { ended };
      return (await Promise.race([refused, Promise.resolve(false)])) && { ended: null };
    }).then(({ ended }) => ended);
  } while (second === null);
  expect(second.stderr).toMatch(/journal is held by process \d+/);
  // A receiver does not start on it either.
  const receiver = await millrace(['serve', '--config', config]);
  expect(receiver.code).toBe(1);

  await target.start();
  const { code, stdout, stderr } = await first;
  expect({ code, stderr }).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('the journal is empty'),
  });
  expect(stdout).toContain(`delivered  ${EVENTS} to target`);
  expect(target.ids().toSorted()).toEqual(ids.toSorted());
  expect((await millrace([...args, '--json'])).code).toBe(0);
});

test('it stops at a signal and says that something is left; dead letters are something', async () => {
  const { args, target } = await stranded();
  // Those that only look can come first, and then the drain is the one to be refused.
  for (;;) {
    const stop = new AbortController();
    const stopped = millrace(args, { signal: stop.signal });
    let isOver = false;
    void stopped.then(() => (isOver = true));
    await until(
      'it to own the journal',
      async () => isOver || (await millrace([...args, '--timeout', '1ms'])).code === 2,
    );
    stop.abort();
    const { code } = await stopped;
    if (code === 2) continue;
    expect(code).toBe(3);
    break;
  }
  target.reply = () => 422;
  await target.start();
  const { code, stdout, stderr } = await millrace(args);
  expect(code).toBe(3);
  expect(stdout).toContain(`left       ${EVENTS} dead letters`);
  expect(stderr).toContain('keep it');
});

test('a journal that is not there is not made', async () => {
  const folder = await temporaryFolder();
  const nowhere = join(folder, 'nowhere');
  const { code, stderr } = await millrace(['drain', '--journal', nowhere, '--config', writeConfig(folder)]);
  expect(code).toBe(1);
  expect(stderr).toContain(nowhere);
  expect(existsSync(nowhere)).toBe(false);
});
