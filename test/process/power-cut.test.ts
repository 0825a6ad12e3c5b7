import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { LoadSender } from '../support/load-sender.ts';
import { writeConfig } from '../support/millrace.ts';
import { Ext4, lacksPowerCut } from '../support/mounts.ts';
import { seededRandom } from '../support/random.ts';
import { expectConserved, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { skipped } from '../support/requirements.ts';
import { within } from '../support/until.ts';

vi.setConfig({ testTimeout: 120_000 });

const lack = lacksPowerCut();

// MILLRACE_POWER_CYCLES=100 for the long run; MILLRACE_POWER_SEED=<seed> to have a run's random numbers again.
const CYCLES = Number(process.env['MILLRACE_POWER_CYCLES'] ?? 5);
const SEED = Number(process.env['MILLRACE_POWER_SEED'] ?? Date.now() % 2 ** 31);

test.skipIf(lack !== null)(
  `fault 02: power cut under load, ${CYCLES} cycles${skipped(lack)}`,
  { timeout: 60_000 + CYCLES * 30_000 },
  async () => {
    console.log(`power cut: ${CYCLES} cycles, MILLRACE_POWER_SEED=${SEED}`);
    const random = seededRandom(SEED);
    const folder = await temporaryFolder();
    const disk = new Ext4(join(folder, 'image'), join(folder, 'disk'), '256M');
    onTestFinished(() => disk.unmount());
    const archive = join(disk.path, 'archive');
    const config = writeConfig(folder, {
      journal: { path: join(disk.path, 'journal') },
      sinks: { archive: { type: 'files', path: archive, rotate: { bytes: '64KiB' } } },
    });
    const sender = new LoadSender();

    for (let cycle = 0; cycle < CYCLES; cycle += 1) {
      disk.mount();
      const receiver = await ReceiverProcess.start(config);
      await sender.during(receiver.url, Math.ceil(random() * 300), async () => {
        await wait(random() * 20);
        disk.cutPower();
        // The disk is gone; the process may not go on as if it were not.
        expect(await within('the end of the receiver', receiver.exited)).toEqual({ code: 1, signal: null });
      });
      disk.unmount();
    }

    disk.mount();
    const receiver = await ReceiverProcess.start(config);
    await sender.during(receiver.url, 100, () => Promise.resolve());
    await receiver.drained();
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expectConserved(await readBack(archive), sender.acknowledged, sender.sent);
    await expectWhole(archive);
  },
);
