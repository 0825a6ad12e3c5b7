import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, ROOT } from '../support/millrace.ts';
import { fillDisk, lacksMount, mountTmpfs } from '../support/mounts.ts';
import { Place, saying } from '../support/place.ts';
import { skipped } from '../support/requirements.ts';
import type { Serving } from '../support/serving.ts';
import { lacksStrace, underStrace } from '../support/strace.ts';
import { until } from '../support/until.ts';
import { linesOf, ORIGIN, proved, receiptsPlace } from './receipts-scene.ts';

const lack = lacksMount();

const metric = async (receiver: Serving, name: string): Promise<number> =>
  Number(new RegExp(`^millrace_receipts_${name} (\\S+)$`, 'm').exec(await receiver.metrics())?.[1]);

/** Whether the log is behind, which readiness says and which keeps no receiver from being ready. */
async function behind(receiver: Serving): Promise<boolean> {
  const ready = await receiver.ask('/readyz?verbose');
  expect(ready.status).toBe(200);
  const { checks } = (await ready.json()) as { checks: { name: string; ok: boolean; state: string }[] };
  const check = checks.find(({ name }) => name === 'receipts');
  expect(check?.ok).toBe(check?.state === 'running');
  return check?.ok === false;
}

/** Every receipt that was given is kept. */
const KEPT = { code: 0, open: 0, false: 0 };

/** Sends events to one receiver, and keeps the receipts that it gets. */
class Sender {
  readonly #receiver: Serving;
  readonly #kept: { id: string; body: Buffer; receipt: string }[] = [];
  #sent = 0;

  constructor(receiver: Serving) {
    this.#receiver = receiver;
  }

  /** @returns the receipt, if one was given */
  async post(): Promise<string | null> {
    const { id, body } = madeUpEvent(this.#sent);
    this.#sent += 1;
    const { status, headers } = await this.#receiver.post(body, { id });
    if (status !== 202) throw new Error(`answered ${status}`);
    const receipt = headers['millrace-receipt'];
    if (receipt === undefined) return null;
    this.#kept.push({ id, body, receipt: String(receipt) });
    return String(receipt);
  }

  get sent(): number {
    return this.#sent;
  }

  /** Sends until it is noticed that the log cannot be written. */
  async noticed(): Promise<void> {
    await until('it to be noticed', async () => {
      await this.post();
      return behind(this.#receiver);
    });
  }

  async writtenAgain(): Promise<void> {
    await until('it to be written again', async () => !(await behind(this.#receiver)));
  }

  /** What the log says of all receipts that were given, once every event has an entry. */
  async verified({ folder }: Place): Promise<unknown> {
    const file = join(folder, 'kept.ndjson');
    writeFileSync(file, linesOf(this.#kept));
    await this.signed();
    const log = new URL('/receipts/', this.#receiver.url).href;
    const { code, stdout } = await millrace(['receipt', 'verify', file, '--log', log, '--json']);
    return { code, ...(JSON.parse(stdout) as object) };
  }

  async signed(): Promise<void> {
    await until('all to be signed', async () => (await metric(this.#receiver, 'entries')) === this.#sent);
  }
}

test.skipIf(lack !== null)(
  `while its disk is full deliveries are answered without receipts, and the log has them all afterwards${skipped(lack)}`,
  async () => {
    const disk = join(await temporaryFolder(), 'disk');
    const unmount = mountTmpfs(disk, '1m');
    const place = await Place.make({
      receipts: { path: join(disk, 'receipts'), origin: ORIGIN, interval: '50ms' },
    });
    const receiver = await place.startProcess();
    onTestFinished(async () => {
      await receiver.kill('SIGKILL');
      unmount();
    });
    const sender = new Sender(receiver);
    expect(await sender.post()).not.toBeNull();
    fillDisk(join(disk, 'full'));
    await sender.noticed();
    expect(await sender.post()).toBeNull();
    expect(await metric(receiver, 'behind')).toBe(1);
    expect(await metric(receiver, 'waiting')).toBeGreaterThan(0);
    expect(await place.ok('status')).toContain('CANNOT BE WRITTEN since');
    rmSync(join(disk, 'full'));
    await sender.writtenAgain();
    expect(await sender.post()).not.toBeNull();
    expect(await sender.verified(place)).toMatchObject(KEPT);
  },
);

const lackOfStrace = lacksStrace();

test.skipIf(lackOfStrace !== null)(
  `fault 7: EIO on a sync of the log: deliveries continue without receipts, nothing is shown that is not on disk, and all are in it afterwards${skipped(lackOfStrace)}`,
  async () => {
    const place = await receiptsPlace();
    const log = place.at('receipts');
    const receiver = await place.startProcess({
      program: underStrace('error=EIO:when=3..5', join(log, 'entries')),
    });
    const sender = new Sender(receiver);
    await sender.noticed();
    // What was shown before is on disk, and the checkpoint speaks of no more than that.
    const [, size = ''] = readFileSync(join(log, 'checkpoint'), 'utf8').split('\n');
    expect(sender.sent).toBeGreaterThanOrEqual(Number(size));
    expect(receiver.stderr).toContain('EIO');
    await sender.writtenAgain();
    expect(await sender.post()).not.toBeNull();
    expect(await sender.verified(place)).toMatchObject(KEPT);
    await receiver.stop();
    const all = { code: 0, archived: sender.sent, missing: [] };
    expect(await proved(place, place.at('archive'))).toMatchObject(all);
  },
);

test.skipIf(lack !== null)(
  `on a file system that became read-only deliveries continue without receipts, and all are in the log afterwards${skipped(lack)}`,
  async () => {
    const place = await receiptsPlace();
    const log = place.at('receipts');
    const receiver = await place.start();
    let isLocked = false;
    const unlock = (): void => {
      if (isLocked) execFileSync('umount', [log]);
      isLocked = false;
    };
    onTestFinished(unlock);
    const sender = new Sender(receiver);
    await sender.post();
    await sender.signed();
    execFileSync('mount', ['--bind', log, log]);
    isLocked = true;
    execFileSync('mount', ['-o', 'remount,ro,bind', log]);
    await sender.noticed();
    expect(receiver.stderr).toContain('EROFS');
    expect(await sender.post()).toBeNull();
    unlock();
    await sender.writtenAgain();
    expect(await sender.post()).not.toBeNull();
    expect(await sender.verified(place)).toMatchObject(KEPT);
  },
);

test('a log that is taken away, emptied or replaced while it is written is never begun again; it continues when it is restored', async () => {
  const place = await receiptsPlace();
  const [log, aside] = [place.at('receipts'), place.at('aside')];
  const sender = new Sender(await place.start());
  for (let n = 0; n < 2; n += 1) await sender.post();
  await sender.signed();
  renameSync(log, aside);
  await sender.noticed();
  mkdirSync(log);
  expect(await sender.post()).toBeNull();
  expect(existsSync(join(log, 'checkpoint'))).toBe(false);
  rmSync(log, { recursive: true });
  renameSync(aside, log);
  await sender.writtenAgain();
  // Its own files, but others than those that are open; and a part that somebody else has written.
  cpSync(log, aside, { recursive: true });
  rmSync(log, { recursive: true });
  renameSync(aside, log);
  await sender.noticed();
  await sender.writtenAgain();
  appendFileSync(join(log, 'entries'), Buffer.alloc(32));
  await sender.noticed();
  await sender.writtenAgain();
  expect(await sender.verified(place)).toMatchObject(KEPT);
});

test('two receivers do not write one log: the second ends as one that systemd starts again; a killed one leaves it free', async () => {
  const place = await receiptsPlace();
  const first = await place.startProcess();
  await new Sender(first).post();
  const log = place.at('receipts');
  const second = await Place.make({ receipts: { path: log, origin: ORIGIN } });
  expect(await second.run('serve')).toMatchObject(
    saying(1, `is in use by another process: ${log} is used by `),
  );
  const unit = readFileSync(join(ROOT, 'deploy/systemd/millrace.service'), 'utf8');
  expect(/^RestartPreventExitStatus=(.*)$/m.exec(unit)?.[1]?.split(' ')).not.toContain('1');
  await first.kill('SIGKILL');
  const again = await place.startProcess();
  const { id, body } = madeUpEvent(1);
  expect((await again.post(body, { id })).headers['millrace-receipt']).toContain('leaf=1,');
});

test('a reload does not change the name or the key of a running log, and a start with another key is refused', async () => {
  const place = await receiptsPlace();
  const receiver = await place.start();
  const sender = new Sender(receiver);
  const before = await sender.post();
  place.edit(({ receipts }) => {
    receipts.origin = 'made-up.example/other';
    receipts.key = place.at('other.key');
  });
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  expect(receiver.stderr).toMatch(/"key":"receipts","msg":"a change to this key needs a restart"/);
  const after = await sender.post();
  expect([before, after].map((one) => one?.includes(ORIGIN))).toEqual([true, true]);
  await receiver.stop();
  place.edit(({ receipts }) => (receipts.origin = ORIGIN));
  expect(await place.run('serve')).toMatchObject(saying(1, `is not signed by the key of ${ORIGIN}`));
});
