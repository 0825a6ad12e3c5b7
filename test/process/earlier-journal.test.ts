import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const PICKY = fileURLToPath(new URL('./picky-sink.ts', import.meta.url));
const EVENTS = 20;

/** A folder with a journal in which events wait. */
async function leftWaiting(): Promise<{
  folder: string;
  configOf: (changes: Record<string, object>) => string;
}> {
  const folder = await temporaryFolder();
  const configOf = (changes: Record<string, object>, ready = true): string => {
    const sinks = { picky: { type: PICKY, folder, ready } };
    return writeConfig(folder, { sinks, routes: [{ match: '*', to: ['picky:right'] }], ...changes });
  };
  const receiver = await Receiver.start(configOf({}, false));
  for (let n = 0; n < EVENTS; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  }
  await receiver.kill('SIGTERM');
  return { folder, configOf };
}

const CHANGES: Record<string, (folder: string) => Record<string, object>> = {
  'acknowledge: delivered': () => ({ acknowledge: 'delivered' as unknown as object }),
  'another journal.path': (folder) => ({ journal: { path: join(folder, 'other') } }),
  'both at once': (folder) => ({
    acknowledge: 'delivered' as unknown as object,
    journal: { path: join(folder, 'other') },
  }),
};

test.each(Object.keys(CHANGES))(
  'fault 63: %s while events wait is refused, by name with the count',
  async (what) => {
    const { folder, configOf } = await leftWaiting();
    const change = CHANGES[what]?.(folder) ?? {};
    const { code, stderr } = await millrace(['serve', '--config', configOf(change)]);
    expect(code).toBe(2);
    expect(stderr).toContain(`events wait in ${join(folder, 'journal')} (${EVENTS} for picky)`);

    // What it says to do helps, and then nothing is said any more.
    const drained = await millrace(['drain', '--journal', join(folder, 'journal'), '--config', configOf({})]);
    expect(drained).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder, 'delivered'), 'utf8').trim().split('\n')).toHaveLength(EVENTS);
    const receiver = await Receiver.start(configOf(change));
    expect((await postSigned(receiver.url)).status).toBe(202);
  },
);

test('fault 63: a journal of an earlier start that is gone is named', async () => {
  const { folder, configOf } = await leftWaiting();
  rmSync(join(folder, 'journal'), { recursive: true });
  const receiver = await Receiver.start(configOf({ journal: { path: join(folder, 'other') } }));
  const gone = await until('the line', () =>
    receiver.logLines().find(({ journal }) => journal === join(folder, 'journal')),
  );
  expect(gone).toMatchObject({ level: 50 });
});
