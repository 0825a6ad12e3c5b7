import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { resolveConfig } from '../../../src/config/load.ts';
import { Cell } from '../../../src/lib/live.ts';
import { openStore } from '../../../src/app/store.ts';
import { foundation } from '../../../src/app/system.ts';
import { makePlan } from '../../../src/app/plan.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { Receiver } from '../../support/receiver.ts';

const USER = '00000000-0000-4000-8000-0000000000aa';

const onFailure = (error: Error): never => {
  throw error;
};

test('a receiver that starts while a command erases, and waits for its journal, knows the user it has erased', async () => {
  const file = writeConfig(await temporaryFolder());
  await (await Receiver.start(file)).kill('SIGTERM');
  const plan = new Cell(await makePlan(await resolveConfig({ file, env: {} })));
  const base = foundation(plan, { log: pino({ enabled: false }), onFailure, file });
  expect((await millrace(['erase', '--now', USER, '--config', file])).code).toBe(0);
  const { stop } = await openStore(base, () => null);
  onTestFinished(() => stop?.(AbortSignal.abort()));
  expect(base.users.has({ team: null, user: USER, clientUser: null })).toBe(true);
});
