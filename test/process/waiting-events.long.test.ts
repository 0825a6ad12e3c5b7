import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { TEAM } from '../support/events.ts';
import { type Ended, millrace, writeConfig } from '../support/millrace.ts';
import { expectConserved, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';

/** The JSON documents a command printed, one a line. */
function documents({ code, stdout, stderr }: Ended): Record<string, unknown>[] {
  expect({ code }, `stderr: ${stderr}`).toEqual({ code: 0 });
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Runs a verb of `quarantine` or `dead-letters`. */
function inBox(name: string, config: string, ...args: readonly string[]): Promise<Ended> {
  return millrace([name, ...args, '--config', config, '--json']);
}

test('quarantine: kept, shown, retried after a change of the config, dropped; with and without a receiver', async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const strict = writeConfig(folder, { envelope: { teams: [TEAM] } });
  const receiver = await Receiver.start(strict);
  const foreign = [madeUpEvent(0), madeUpEvent(1), madeUpEvent(2)];
  for (const { id, body } of foreign) {
    const { status, json } = await postSigned(receiver.url, body, { id });
    expect({ status, json }).toEqual({
      status: 202,
      json: { status: 'quarantined', id, code: 'team_foreign' },
    });
  }
  // Through the receiver, which still finds them invalid.
  expect(documents(await inBox('quarantine', strict, 'list')).map(({ id }) => id)).toEqual(
    foreign.map(({ id }) => id),
  );
  expect(documents(await inBox('quarantine', strict, 'retry', '--all'))).toEqual([{ retried: 0, kept: 3 }]);
  const slip = await inBox('quarantine', strict, 'drop', '3', '99');
  expect(slip).toMatchObject({ code: 2, stdout: '' });
  expect(slip.stderr).toContain('quarantine has no 99; nothing was changed');
  expect(documents(await inBox('quarantine', strict, 'drop', '3'))).toEqual([{ dropped: 1 }]);
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });

  // On the journal itself, once the config has changed.
  const open = writeConfig(folder);
  const shown = await inBox('quarantine', open, 'show', '1');
  expect(JSON.parse(shown.stdout)).toMatchObject({
    key: 1,
    id: foreign[0]?.id,
    reasons: [{ code: 'team_foreign' }],
    body_base64: foreign[0]?.body.toString('base64'),
  });
  expect(documents(await inBox('quarantine', open, 'retry', '1'))).toEqual([{ retried: 1, kept: 0 }]);
  expect(documents(await inBox('quarantine', open, 'list'))).toHaveLength(1);

  // And through the receiver that runs with it.
  const next = await Receiver.start(open);
  expect(documents(await inBox('quarantine', open, 'retry', '--all'))).toEqual([{ retried: 1, kept: 0 }]);
  expect(documents(await inBox('quarantine', open, 'list'))).toEqual([]);
  await next.drained();
  expect(await next.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expectConserved(await readBack(archive), new Map(foreign.slice(0, 2).map(({ id, body }) => [id, body])));
  await expectWhole(archive);
});

/** A sink of a user's own that refuses what is larger than it likes. */
const PICKY = `
export const parseOptions = (options) => options;
export const createSink = ({ most }) => ({
  limits: { batchCount: 10, batchBytes: 1e6, eventBytes: most, inFlight: 1, order: 'none', batchBy: 'mixed' },
  open: async () => {},
  send: async (batch) => batch.map(() => ({ status: 'delivered' })),
  close: async () => {},
});`;

test('dead letters: kept, listed, retried, dropped; with and without a receiver', async () => {
  const folder = await temporaryFolder();
  writeFileSync(join(folder, 'picky.mjs'), PICKY);
  const withLimit = (most: number): string =>
    writeConfig(folder, {
      sinks: {
        archive: { type: 'files', path: join(folder, 'archive') },
        picky: { type: './picky.mjs', most },
      },
      routes: [{ match: '*', to: ['picky', 'archive'] }],
    });
  const tight = withLimit(10);
  const receiver = await Receiver.start(tight);
  const events = [madeUpEvent(0), madeUpEvent(1)];
  for (const { id, body } of events) {
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  }
  expect((await receiver.drained()).journal).toMatchObject({ deadLetters: 2 });
  expect(documents(await inBox('dead-letters', tight, 'list'))).toMatchObject(
    events.map(({ id }) => ({ id, sink: 'picky', code: 'too_large' })),
  );
  expect(documents(await inBox('dead-letters', tight, 'list', '--sink', 'archive'))).toEqual([]);
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });

  const wide = withLimit(1e6);
  expect(documents(await inBox('dead-letters', wide, 'drop', '2'))).toEqual([{ dropped: 1 }]);
  expect(documents(await inBox('dead-letters', wide, 'retry', '--all'))).toEqual([{ retried: 1, kept: 0 }]);
  const next = await Receiver.start(wide);
  expect((await next.drained()).journal).toMatchObject({ deadLetters: 0 });
  expect((await next.status()).sinks).toContainEqual(
    expect.objectContaining({ sink: 'picky', delivered: 1 }),
  );
  expect(await next.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  // Only the sink that had refused it got it again.
  const found = await readBack(join(folder, 'archive'));
  expect([...found.values()].map((copies) => copies.length)).toEqual([1, 1]);
});

test('status says the same with and without a receiver', async () => {
  const config = writeConfig(await temporaryFolder());
  const receiver = await ReceiverProcess.start(config);
  expect((await postSigned(receiver.url)).status).toBe(202);
  await receiver.drained();
  const [running] = documents(await millrace(['status', '--json', '--config', config]));
  expect(running).toMatchObject({ pid: receiver.pid, journal: { events: 1, quarantined: 0 } });
  expect((await millrace(['status', '--config', config])).stdout).toContain(`process ${receiver.pid}`);
  await receiver.kill('SIGTERM');
  const [stopped] = documents(await millrace(['status', '--json', '--config', config]));
  expect(stopped).toMatchObject({ pid: null, journal: { events: 1, lastSeq: 1, quarantined: 0 }, sinks: [] });
  expect((await millrace(['status', '--config', config])).stdout).toContain('not running');
  // After kill -9 the note of the owner is stale, and nobody is asked who is not there.
  const killed = await ReceiverProcess.start(config);
  await killed.kill('SIGKILL');
  expect(documents(await millrace(['status', '--json', '--config', config]))).toMatchObject([{ pid: null }]);
});

test('status without an admin listener says what is in the way', async () => {
  const config = writeConfig(await temporaryFolder(), { admin: { enabled: false } });
  const receiver = await ReceiverProcess.start(config);
  const { code, stderr } = await millrace(['status', '--config', config]);
  expect({ code }).toEqual({ code: 1 });
  expect(stderr).toContain(`process ${receiver.pid}`);
  expect(stderr).toContain('admin.enabled');
});
