import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { fillDisk, lacksMount, mountTmpfs } from '../support/mounts.ts';
import { expectConserved, expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { skipped } from '../support/requirements.ts';
import { type Answer, postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const lack = lacksMount();

/** Posts new events until one is not taken, and returns that answer. */
async function postUntilRefused(url: string, acknowledged: Map<string, Buffer>): Promise<Answer> {
  for (;;) {
    const { id, body } = madeUpEvent(acknowledged.size);
    const answer = await postSigned(url, body, { id });
    if (answer.status >= 300) return answer;
    acknowledged.set(id, body);
    expect(acknowledged.size).toBeLessThan(20_000);
  }
}

async function postUntilTaken(url: string, acknowledged: Map<string, Buffer>): Promise<void> {
  const { id, body } = madeUpEvent(acknowledged.size);
  await until('space, and a 2xx', async () => (await postSigned(url, body, { id })).status < 300);
  acknowledged.set(id, body);
}

test.skipIf(lack !== null)(
  `fault 06: disk full: 503, nothing lost, and recovery when there is space${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const archive = join(folder, 'archive');
    const path = join(folder, 'small');
    onTestFinished(mountTmpfs(path, '4m'));
    const config = writeConfig(folder, { journal: { path: join(path, 'journal') } });
    const receiver = await ReceiverProcess.start(config);
    const acknowledged = new Map<string, Buffer>();
    for (let n = 0; n < 20; n += 1) await postUntilTaken(receiver.url, acknowledged);

    fillDisk(join(path, 'filler'));
    const refused = await postUntilRefused(receiver.url, acknowledged);
    expect(refused).toMatchObject({ status: 503, json: { code: 'journal_full' } });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    // A load balancer goes by this.
    const ready = async (): Promise<number> => (await fetch(new URL('/readyz', receiver.adminUrl))).status;
    expect(await ready()).toBe(503);
    // What was acknowledged continues to its sinks meanwhile.
    await until('delivery while the disk is full', async () => {
      const found = await readBack(archive, { parts: true });
      return [...acknowledged.keys()].every((id) => found.has(id));
    });

    rmSync(join(path, 'filler'));
    // Nothing has come in that could have shown it.
    await until('readiness', async () => (await ready()) === 200);
    for (let n = 0; n < 20; n += 1) await postUntilTaken(receiver.url, acknowledged);
    await receiver.drained();
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    const found = await readBack(archive);
    expectConserved(found, acknowledged);
    expectOnce(found);
    await expectWhole(archive);
  },
);

test.skipIf(lack !== null)(
  `fault 06: a disk that the journal itself fills is used over and over${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const archive = join(folder, 'archive');
    const path = join(folder, 'small');
    const disk = 96 * 2 ** 20;
    onTestFinished(mountTmpfs(path, String(disk)));
    const config = writeConfig(folder, { journal: { path: join(path, 'journal') } });
    const receiver = await ReceiverProcess.start(config);
    const acknowledged = new Map<string, Buffer>();
    const padding = Buffer.alloc(200_000, 0x20);
    for (let sent = 0; sent < 2 * disk; sent += padding.length) {
      const { id, body } = madeUpEvent(acknowledged.size);
      const large = Buffer.concat([body, padding]);
      // With a 503 now and then, but never for good: what is settled makes room before its retention is over.
      await until(
        'space, and a 2xx',
        async () => (await postSigned(receiver.url, large, { id })).status < 300,
      );
      acknowledged.set(id, large);
    }
    await receiver.drained();
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    const found = await readBack(archive);
    expectConserved(found, acknowledged);
    expectOnce(found);
    await expectWhole(archive);
  },
);
