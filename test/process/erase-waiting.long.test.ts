import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ErasureRequest, ErasureResult } from '../../src/core/erasure.ts';
import { ErasedUsers } from '../../src/erase/erased-users.ts';
import { eventOf, find, secretOf, userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const GATED = join(import.meta.dirname, 'gated-sink.ts');
const PICKY = join(import.meta.dirname, 'picky-sink.ts');

/** A receiver with one sink of the test's own, and events of users 1 and 2 in turns. */
async function start(sink: object): Promise<{ folder: string; config: string; receiver: Serving }> {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, {
    sinks: { own: { ...sink, folder } },
    routes: [{ match: '*', to: ['own:right'] }] as unknown as object,
  });
  const receiver = await ReceiverProcess.start(config);
  for (let n = 0; n < 10; n += 1) {
    for (const user of [1, 2]) {
      const event = eventOf(user, n);
      expect((await postSigned(receiver.url, event.body, { id: event.id })).status).toBe(202);
    }
  }
  return { folder, config, receiver };
}

function deliveredIn(folder: string): string[] {
  const file = join(folder, 'delivered');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).sort() : [];
}

const OTHERS = Array.from({ length: 10 }, (_, n) => `msg_2_${n}`);

test('what waits for a sink that is down is never sent once its user is erased', async () => {
  const { folder, config, receiver } = await start({ type: PICKY, ready: false });
  const run = await millrace(['erase', userId(1), '--now', '--json', '--config', config]);
  expect([run.code, run.stderr]).toEqual([0, '']);
  expect(JSON.parse(run.stdout)).toMatchObject({ left: [], receipts: [{ records_removed: 10 }] });
  expect(find([folder], [userId(1), secretOf(1)])).toEqual([]);
  const ready = JSON.parse(readFileSync(config, 'utf8')) as { sinks: { own: object } };
  writeFileSync(config, JSON.stringify({ ...ready, sinks: { own: { ...ready.sinks.own, ready: true } } }));
  receiver.signal('SIGHUP');
  await receiver.drained();
  expect(deliveredIn(folder)).toEqual(OTHERS);
});

test('a batch on its way is waited for; what follows it is not sent', async () => {
  const { folder, config, receiver } = await start({ type: GATED });
  await until('a batch on its way', () => existsSync(join(folder, 'begun')));
  const erased = millrace(['erase', userId(1), '--now', '--json', '--config', config]);
  await until('the list of erased users', () => existsSync(join(folder, 'erasure', 'erased.jsonl')));
  writeFileSync(join(folder, 'gate'), '');
  const { code, stdout } = await erased;
  expect([code, (JSON.parse(stdout) as ErasureResult).left]).toEqual([0, []]);
  await receiver.drained();
  const delivered = deliveredIn(folder);
  expect(delivered.filter((id) => id.startsWith('msg_2_'))).toEqual(OTHERS);
  // One batch holds ten events at most, and was in flight.
  expect(delivered.length).toBeLessThan(20);
  expect(find([folder], [userId(1), secretOf(1)])).toEqual([]);
});

test('after a kill -9 amid the run nothing of the user is sent before the run continues', async () => {
  const { folder, config, receiver } = await start({ type: PICKY, ready: false });
  await receiver.kill('SIGKILL');
  await millrace(['erase', userId(1), '--config', config]);
  const requests = join(folder, 'erasure', 'requests');
  const [name = ''] = readdirSync(requests);
  // What a run leaves that is killed when it has blocked the user.
  const request = JSON.parse(readFileSync(join(requests, name), 'utf8')) as ErasureRequest;
  writeFileSync(join(requests, name), JSON.stringify({ ...request, begun_at: request.requested_at }));
  await ErasedUsers.open(join(folder, 'erasure')).block(request, request.requested_at);
  const ready = JSON.parse(readFileSync(config, 'utf8')) as { sinks: { own: object } };
  writeFileSync(config, JSON.stringify({ ...ready, sinks: { own: { ...ready.sinks.own, ready: true } } }));
  const again = await Receiver.start(config);
  await again.drained();
  await until('the receipt', () => existsSync(join(folder, 'erasure', 'receipts', name)));
  expect(deliveredIn(folder)).toEqual(OTHERS);
});
