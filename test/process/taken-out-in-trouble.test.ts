import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

/** Says once that it is down, and answers no more until it is up. */
const DOWN = `
import { existsSync } from 'node:fs';
let said = false;
export const parseOptions = (options) => options;
export const createSink = ({ up, most = 1e6 }) => ({
  limits: { batchCount: 10, batchBytes: 1e6, eventBytes: most, inFlight: 1, order: 'user', batchBy: 'mixed' },
  open: async () => {},
  send: async (batch, signal) => {
    while (!existsSync(up)) {
      if (!said) { said = true; throw new Error('it is down'); }
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return batch.map(() => ({ status: 'delivered' }));
  },
  close: async () => {},
});`;

test.each([
  ['is being tried again', false],
  ['has been made anew by a reload', true],
])('a sink in trouble that %s is not taken out while events wait for it', async (_, isMadeAnew) => {
  const folder = await temporaryFolder();
  writeFileSync(join(folder, 'down.mjs'), DOWN);
  const up = join(folder, 'up');
  const down = { type: './down.mjs', up };
  const kept = { type: 'files', path: join(folder, 'kept') };
  const change = (sinks: Record<string, object>): string =>
    writeConfig(folder, {
      sinks,
      routes: [{ match: '*', to: Object.keys(sinks) }],
      shutdown: { deadline: '1s' },
    });
  const receiver = await Receiver.start(change({ kept, down }));
  const answers = (): unknown[] =>
    receiver
      .logLines()
      .flatMap(({ msg, error }) => (String(msg).startsWith('reload') ? [error ?? 'done'] : []));
  const reload = async (): Promise<unknown> => {
    const before = answers().length;
    receiver.signal('SIGHUP');
    await until('an answer to SIGHUP', () => answers().length > before);
    return answers().at(-1);
  };
  for (let n = 0; n < 20; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  }
  await until('it to be tried again', () =>
    receiver
      .logLines()
      .some(({ sink, from, to }) => sink === 'down' && from === 'paused' && to === 'running'),
  );
  if (isMadeAnew) {
    change({ kept, down: { ...down, most: 1e5 } });
    expect(await reload()).toBe('done');
  }
  change({ kept });
  expect(await reload()).toContain('sinks.down: 20 events wait for it');
  writeFileSync(up, '');
  await receiver.drained();
  expect(await reload()).toBe('done');
});
