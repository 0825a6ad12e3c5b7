import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { witnessBy } from '../receipts/witness-by-hand.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

async function post(receiver: Serving, n: number): Promise<string | undefined> {
  const { id, body } = madeUpEvent(n);
  const { status, headers } = await postSigned(receiver.url, body, { id });
  expect(status).toBe(202);
  return headers['millrace-receipt']?.toString();
}

/** What all that can be asked says of it. */
async function said(receiver: Serving, config: string) {
  const get = async (path: string) => (await fetch(new URL(path, receiver.adminUrl))).text();
  const { checks } = JSON.parse(await get('/readyz?verbose')) as {
    checks: { name: string; ok: boolean; state: string }[];
  };
  const check = checks.find(({ name }) => name === 'receipts');
  const metrics = await get('/metrics');
  const status = (await millrace(['status', '--config', config])).stdout;
  return {
    check: `${check?.ok} ${check?.state}`,
    metric: /^millrace_receipts_refused\{witness="w"\} (\d)$/m.exec(metrics)?.[1],
    refuses: status.includes('REFUSES'),
  };
}

const REFUSED = { check: 'false refused', metric: '1', refuses: true };
const SIGNED = { check: 'true running', metric: '0', refuses: false };

test('a disk that was put back promises nothing from its start on, and says so, until the witness signs again', async () => {
  const folder = await temporaryFolder();
  const place = join(folder, 'receiver');
  // Of a log it knows only how long it was: what it has signed goes on as long as it grows.
  let known = 0;
  let isDown = false;
  const witness = await witnessBy('w', (line, note) => {
    if (isDown) return [503, ''];
    const size = Number(note.split('\n')[1]);
    if (size < known) return [409, `${known}\n`];
    known = size;
    return [200, line(note)];
  });
  const config = writeConfig(folder, {
    receipts: {
      path: join(place, 'receipts'),
      origin: 'made-up.example/events',
      interval: '50ms',
      witnesses: [witness.text],
    },
    journal: { path: join(place, 'journal') },
  });
  const older = join(folder, 'older');
  let receiver: Serving = await Receiver.start(config);
  await post(receiver, 0);
  await until('it to be signed', () => known === 1);
  await receiver.kill('SIGTERM');
  cpSync(place, older, { recursive: true });
  receiver = await Receiver.start(config);
  for (let n = 1; n < 8; n += 1) expect(await post(receiver, n)).toContain(`leaf=${n},`);
  await until('all to be signed', () => known === 8);
  expect(await said(receiver, config)).toEqual(SIGNED);
  await receiver.kill('SIGTERM');
  rmSync(place, { recursive: true });
  cpSync(older, place, { recursive: true });

  // It signs nothing by itself before the first event: the start alone has asked.
  const plain = readFileSync(config, 'utf8');
  writeFileSync(config, plain.replace('50ms', '1h'));
  receiver = await ReceiverProcess.start(config);
  expect(await post(receiver, 100)).toBeUndefined();
  expect(await said(receiver, config)).toEqual(REFUSED);
  await receiver.kill('SIGKILL');
  writeFileSync(config, plain);
  receiver = await Receiver.start(config);
  expect(receiver.logLines()).toContainEqual(
    expect.objectContaining({
      level: 50,
      witness: 'w',
      reason: expect.stringContaining('it has signed 8 entries, and the log has '),
      msg: expect.stringContaining('Deliveries are answered without receipts'),
    }),
  );
  // One that cannot be reached any more has not taken it back.
  isDown = true;
  await until('it to be asked again', () => receiver.stderr.includes('it answered 503'));
  expect(await post(receiver, 101)).toBeUndefined();
  expect(await said(receiver, config)).toEqual(REFUSED);
  isDown = false;
  known = 1;
  await until('it to sign', async () => (await said(receiver, config)).metric === '0');
  expect(await post(receiver, 102)).toContain('leaf=3,');
  expect(await said(receiver, config)).toEqual(SIGNED);
});

test('a witness that does not answer holds a start up for a moment only, and takes no receipts away', async () => {
  const folder = await temporaryFolder();
  const witness = await witnessBy('w', () => [500, '']);
  const config = writeConfig(folder, {
    receipts: {
      path: join(folder, 'receipts'),
      origin: 'made-up.example/events',
      interval: '50ms',
      witnesses: [witness.text],
    },
  });
  let receiver: Serving = await Receiver.start(config);
  expect(await post(receiver, 0)).toContain('leaf=0,');
  await receiver.kill('SIGTERM');
  receiver = await Receiver.start(config);
  expect(await post(receiver, 1)).toContain('leaf=1,');
  expect(await said(receiver, config)).toEqual(SIGNED);
});
