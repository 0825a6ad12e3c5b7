import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { writeArchive } from '../replay/made-up-archive.ts';
import { temporaryFolder } from '../support/folders.ts';
import { childEnvironment, MAIN, millrace, writeConfig } from '../support/millrace.ts';
import { readBack } from '../support/read-back.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until, within } from '../support/until.ts';

const REFUSED = 'labtest.order.updated';

/** A receiver with a sink that refuses one type, and archives that nothing is routed to. */
async function setting() {
  const folder = await temporaryFolder();
  const archive = (name: string): string => join(folder, name);
  const config = writeConfig(folder, {
    sinks: {
      own: {
        type: fileURLToPath(new URL('../replay/choosy-sink.ts', import.meta.url)),
        folder,
        refuses: REFUSED,
      },
      ...Object.fromEntries(
        ['one', 'two', 'three', 'four'].map((name) => [name, { type: 'files', path: archive(name) }]),
      ),
    },
    routes: [{ match: '*', to: ['own'] }],
    // It notes in the journal what it has seen, while the journal's size is compared.
    schema: { enabled: false },
  });
  const replay = async (input: string, to: string, ...args: string[]): Promise<string[]> => {
    const { code, stderr } = await millrace(['replay', input, '--to', to, '--config', config, ...args]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return [...(await readBack(archive(to))).keys()].toSorted();
  };
  return { folder, config, archive, replay };
}

test('the journal, quarantine and dead letters, through the running receiver and without one', async () => {
  const { config, archive, replay } = await setting();
  const receiver = await Receiver.start(config);
  const bodies = new Map<string, Buffer>();
  const refused: string[] = [];
  for (let n = 0; n < 45; n += 1) {
    const { id, type, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    bodies.set(id, body);
    if (type === REFUSED) refused.push(id);
  }
  const invalid = Buffer.from('{"event_type":"daily.data.meal.created","data":{"made":"up"}}');
  expect((await postSigned(receiver.url, invalid, { id: 'msg_invalid' })).json).toMatchObject({
    status: 'quarantined',
  });
  const before = await receiver.drained();
  expect(before.journal).toMatchObject({ quarantined: 1, deadLetters: refused.length });

  expect(await replay('journal', 'one')).toEqual([...bodies.keys()].toSorted());
  expect(await replay('quarantine', 'two')).toEqual(['msg_invalid']);
  expect(await replay('dead-letters', 'three', '--sink', 'own')).toEqual(refused.toSorted());
  for (const copies of (await readBack(archive('one'))).values()) {
    const { record, body } = copies[0]!;
    expect(body.equals(bodies.get(record.id) ?? Buffer.alloc(0))).toBe(true);
    expect(record.source).toBe('webhooks');
    expect(record.headers).toMatchObject({ 'webhook-id': record.id });
  }
  // Nothing of it was changed by being read.
  expect((await receiver.status()).journal).toEqual(before.journal);
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });

  const meals = [...bodies].filter(([, body]) => body.includes('"daily.data.meal.')).map(([id]) => id);
  expect(await replay('journal', 'four', '--type', 'daily.data.meal.')).toEqual(meals.toSorted());
});

test('what is in quarantine with a receipt is no erased event of the journal', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, {
    receipts: { path: join(folder, 'receipts'), origin: 'example.com/made-up' },
  });
  const receiver = await Receiver.start(config);
  const { id, body } = madeUpEvent(1);
  await postSigned(receiver.url, body, { id });
  const invalid = await postSigned(receiver.url, Buffer.from('{}'), { id: 'msg_invalid' });
  expect(invalid.json).toMatchObject({ status: 'quarantined' });
  const replayed = async (): Promise<unknown> => {
    const args = ['replay', 'journal', '--to', 'archive', '--dry-run', '--json', '--config', config];
    return JSON.parse((await millrace(args)).stdout);
  };
  const expected = { ok: true, read: 1, selected: 1, erased: 0, problems: 0 };
  expect(await replayed()).toMatchObject(expected);
  await receiver.kill('SIGTERM');
  expect(await replayed()).toMatchObject(expected);
});

test('SIGTERM: exit code 3, how to continue, and continuing', async () => {
  const { folder, config } = await setting();
  const source = join(folder, 'source');
  const events = writeArchive(source, { files: 1, each: 400 });
  const args = ['replay', source, '--to', 'one', '--config', config, '--json'];
  const child = spawn(process.execPath, [MAIN, ...args, '--rate', '200/s'], { env: childEnvironment() });
  onTestFinished(() => void child.kill('SIGKILL'));
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const exited = once(child, 'close');
  await until(
    'the first events',
    async () => (await readBack(join(folder, 'one'), { parts: true }).catch(() => new Map())).size > 20,
  );
  child.kill('SIGTERM');
  expect(await within('the end after SIGTERM', exited)).toEqual([3, null]);
  expect(stderr).toContain('--resume');
  const first = JSON.parse(stdout) as { selected: number; replay_id: string };
  expect(first).toMatchObject({ ok: false, complete: false });
  expect(first.selected).toBeLessThan(400);
  // What was interrupted in order was noted in order: nothing comes twice.
  writeFileSync(join(source, 'late.ndjson'), 'what comes later is no part of it\n');
  const ended = await millrace([...args, '--resume']);
  expect(ended.code).toBe(0);
  expect(JSON.parse(ended.stdout)).toMatchObject({ ok: true, selected: 400, replay_id: first.replay_id });
  const found = await readBack(join(folder, 'one'));
  expect([...found.keys()].toSorted()).toEqual(events.map(({ id }) => id).toSorted());
  expect([...found.values()].filter((copies) => copies.length > 1)).toEqual([]);
});
