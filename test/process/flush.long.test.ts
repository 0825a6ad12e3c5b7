import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { expectConserved, expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';

interface Flushed {
  readonly sink: string;
  readonly files: readonly { readonly file: string; readonly records: number }[];
  readonly failed: readonly string[];
  readonly waiting: boolean;
}

const stdout = { out: { type: 'stdout' } };

/** A receiver, what it has acknowledged, and the command on it. */
async function scene() {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const sinks = { archive: { type: 'files', path: archive }, ...stdout };
  const config = writeConfig(folder, { sinks, routes: [{ match: '*', to: ['archive', 'out'] }] });
  const sent = new Map<string, Buffer>();
  const send = async (receiver: Serving, count: number): Promise<void> => {
    for (let n = 0; n < count; n += 1) {
      const id = `msg_${sent.size}`;
      const { body } = madeUpEvent(n);
      expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
      sent.set(id, body);
    }
  };
  const flush = async (...args: string[]): Promise<Flushed[]> => {
    const run = await millrace(['flush', '--json', '--config', config, ...args]);
    expect(run.code, run.stderr).toBe(0);
    return run.stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line) as Flushed); // prettier-ignore
  };
  return { archive, config, sent, send, flush };
}

const records = (flushed: readonly Flushed[]): number =>
  flushed.flatMap(({ files }) => files).reduce((sum, each) => sum + each.records, 0);

test('flushed events can be read at once, again and again, side by side, and after kill -9 each is there once', async () => {
  const { archive, config, sent, send, flush } = await scene();
  const receiver = await ReceiverProcess.start(config);
  await send(receiver, 3);
  const first = await flush();
  expect(first).toMatchObject([{ sink: 'archive', failed: [], waiting: false }]);
  expect(records(first)).toBe(3);
  for (const { file } of first.flatMap(({ files }) => files)) expect(existsSync(file), file).toBe(true);
  expectConserved(await readBack(archive), sent);

  expect(records(await flush('archive')), 'twice').toBe(0);

  // While one closes a file, another asks, and events come in.
  const both = Promise.all([flush(), flush()]);
  await send(receiver, 5);
  await both;
  await flush();
  expectConserved(await readBack(archive), sent);

  await send(receiver, 2);
  await flush();
  await receiver.kill('SIGKILL');
  const next = await Receiver.start(config);
  await send(next, 1);
  await flush();
  const found = await readBack(archive);
  expectConserved(found, sent);
  expectOnce(found);
  expect((await next.kill('SIGTERM')).code).toBe(0);
  await expectWhole(archive);
});

test('what cannot be flushed is said: a sink without files, a typo, no receiver', async () => {
  const { config, flush } = await scene();
  const run = async (...args: string[]): Promise<[number | null, string]> => {
    const { code, stderr } = await millrace(['flush', ...args, '--config', config]);
    return [code, stderr];
  };
  expect(await run()).toEqual([1, expect.stringContaining('none runs with this config')]);
  const receiver = await ReceiverProcess.start(config);
  expect(await run('out')).toEqual([2, expect.stringContaining('sinks.out keeps no files open')]);
  expect(await run('archve')).toEqual([2, expect.stringContaining('did you mean archive?')]);
  expect(await run()).toEqual([0, 'no file was open\n']);
  expect(await flush()).toHaveLength(1);
  await receiver.kill('SIGKILL');
  expect(await run()).toEqual([1, expect.stringContaining('Receiver cannot be reached')]);
});
