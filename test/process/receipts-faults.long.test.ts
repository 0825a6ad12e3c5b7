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
import { prove } from '../receipts/prove.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, millraceProcess, writeConfig } from '../support/millrace.ts';
import { fillDisk, lacksMount, mountTmpfs } from '../support/mounts.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { lacksStrace, underStrace } from '../support/strace.ts';
import { until } from '../support/until.ts';

const lack = lacksMount();
const ORIGIN = 'made-up.example/events';

async function configured(log?: string) {
  const folder = await temporaryFolder();
  const path = log ?? join(folder, 'receipts');
  const receipts = { path, origin: ORIGIN, interval: '50ms' };
  return { folder, log: path, receipts, config: writeConfig(folder, { receipts }) };
}

/** @returns what the sender keeps, or null where no receipt was given */
async function post(receiver: Serving, n: number): Promise<string | null> {
  const { id, body } = madeUpEvent(n);
  const { status, headers } = await postSigned(receiver.url, body, { id });
  expect(status).toBe(202);
  const receipt = headers['millrace-receipt'];
  if (receipt === undefined) return null;
  return JSON.stringify({ id, receipt, body_base64: body.toString('base64') });
}

async function behind(receiver: Serving): Promise<boolean> {
  const ready = await fetch(new URL('/readyz?verbose', receiver.adminUrl));
  expect(ready.status).toBe(200);
  const { checks } = (await ready.json()) as { checks: { name: string; ok: boolean; state: string }[] };
  const check = checks.find(({ name }) => name === 'receipts');
  expect(check?.ok).toBe(check?.state === 'running');
  return check?.ok === false;
}

async function metric(receiver: Serving, name: string): Promise<number> {
  const text = await (await fetch(new URL('/metrics', receiver.adminUrl))).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

/** Every receipt that was given is kept in the end, and every event has an entry. */
async function keeps(
  receiver: Serving,
  folder: string,
  kept: readonly (string | null)[],
  size: number,
): Promise<void> {
  const file = join(folder, 'kept.ndjson');
  writeFileSync(
    file,
    kept
      .filter((one) => one !== null)
      .map((one) => `${one}\n`)
      .join(''),
  );
  const log = new URL('/receipts/', receiver.url).href;
  await until('all to be signed', async () => (await metric(receiver, 'millrace_receipts_entries')) === size);
  const verified = await millrace(['receipt', 'verify', file, '--log', log, '--json']);
  expect([verified.code, JSON.parse(verified.stdout)]).toMatchObject([0, { open: 0, false: 0 }]);
}

test.skipIf(lack !== null)(
  `while its disk is full deliveries are answered without receipts, and the log has them all afterwards${skipped(lack)}`,
  async () => {
    const disk = join(await temporaryFolder(), 'disk');
    const unmount = mountTmpfs(disk, '1m');
    const { folder, config } = await configured(join(disk, 'receipts'));
    const receiver = await ReceiverProcess.start(config);
    onTestFinished(async () => {
      await receiver.kill('SIGKILL');
      unmount();
    });
    const kept = [await post(receiver, 0)];
    expect(kept[0]).not.toBeNull();
    fillDisk(join(disk, 'full'));
    let sent = 1;
    await until('it to be noticed', async () => {
      kept.push(await post(receiver, sent));
      sent += 1;
      return behind(receiver);
    });
    expect(await post(receiver, sent)).toBeNull();
    expect(await metric(receiver, 'millrace_receipts_behind')).toBe(1);
    expect(await metric(receiver, 'millrace_receipts_waiting')).toBeGreaterThan(0);
    expect((await millrace(['status', '--config', config])).stdout).toContain('CANNOT BE WRITTEN since');
    rmSync(join(disk, 'full'));
    await until('it to be written again', async () => !(await behind(receiver)));
    kept.push(await post(receiver, sent + 1));
    expect(kept.at(-1)).not.toBeNull();
    await keeps(receiver, folder, kept, sent + 2);
  },
);

const lackOfStrace = lacksStrace();

test.skipIf(lackOfStrace !== null)(
  `fault 7: EIO on a sync of the log: deliveries go on without receipts, nothing is shown that is not on disk, and all are in it afterwards${skipped(lackOfStrace)}`,
  async () => {
    const { folder, log, config } = await configured();
    const entries = join(log, 'entries');
    const receiver = await ReceiverProcess.start(config, {
      program: underStrace('error=EIO:when=3..5', entries),
    });
    const kept: (string | null)[] = [];
    await until('it to be noticed', async () => {
      kept.push(await post(receiver, kept.length));
      return behind(receiver);
    });
    // What was told before is on disk, and the checkpoint speaks of no more than that.
    const [, size = ''] = readFileSync(join(log, 'checkpoint'), 'utf8').split('\n');
    expect(kept.length).toBeGreaterThanOrEqual(Number(size));
    expect(receiver.stderr).toContain('EIO');
    await until('it to be written again', async () => !(await behind(receiver)));
    kept.push(await post(receiver, kept.length));
    expect(kept.at(-1)).not.toBeNull();
    await keeps(receiver, folder, kept, kept.length);
    await receiver.kill('SIGTERM');
    const proved = await prove(join(folder, 'archive'), ['--config', config]);
    expect(proved).toMatchObject({ code: 0, said: { archived: kept.length, missing: [] } });
  },
);

test.skipIf(lack !== null)(
  `on a file system that became read-only deliveries go on without receipts, and all are in the log afterwards${skipped(lack)}`,
  async () => {
    const { folder, log, config } = await configured();
    const receiver = await Receiver.start(config);
    let isLocked = false;
    const unlock = (): void => {
      if (isLocked) execFileSync('umount', [log]);
      isLocked = false;
    };
    onTestFinished(unlock);
    const kept = [await post(receiver, 0)];
    await until('it to be signed', async () => (await metric(receiver, 'millrace_receipts_entries')) === 1);
    execFileSync('mount', ['--bind', log, log]);
    isLocked = true;
    execFileSync('mount', ['-o', 'remount,ro,bind', log]);
    await until('it to be noticed', async () => {
      kept.push(await post(receiver, kept.length));
      return behind(receiver);
    });
    expect(receiver.stderr).toContain('EROFS');
    expect(await post(receiver, kept.length)).toBeNull();
    unlock();
    await until('it to be written again', async () => !(await behind(receiver)));
    kept.push(await post(receiver, kept.length + 1));
    expect(kept.at(-1)).not.toBeNull();
    await keeps(receiver, folder, kept, kept.length + 1);
  },
);

test('a log that is taken away, emptied or replaced while it is written is never begun anew; it goes on when it is restored', async () => {
  const { folder, log, config } = await configured();
  const receiver = await Receiver.start(config);
  const kept = [await post(receiver, 0), await post(receiver, 1)];
  let sent = 2;
  await until('both to be signed', async () => (await metric(receiver, 'millrace_receipts_entries')) === 2);
  const noticed = () =>
    until('it to be noticed', async () => {
      kept.push(await post(receiver, sent));
      sent += 1;
      return behind(receiver);
    });
  const again = () => until('it to be written again', async () => !(await behind(receiver)));
  const aside = join(folder, 'aside');
  renameSync(log, aside);
  await noticed();
  mkdirSync(log);
  expect(await post(receiver, sent)).toBeNull();
  sent += 1;
  expect(existsSync(join(log, 'checkpoint'))).toBe(false);
  rmSync(log, { recursive: true });
  renameSync(aside, log);
  await again();
  // Its own files, but others than those that are open; and a part that somebody else has written.
  cpSync(log, aside, { recursive: true });
  rmSync(log, { recursive: true });
  renameSync(aside, log);
  await noticed();
  await again();
  appendFileSync(join(log, 'entries'), Buffer.alloc(32));
  await noticed();
  await again();
  await keeps(receiver, folder, kept, sent);
});

test('two receivers do not write one log, and a killed one leaves it free', async () => {
  const { config, receipts, log } = await configured();
  const first = await ReceiverProcess.start(config);
  await post(first, 0);
  const other = await temporaryFolder();
  const second = await millraceProcess(['serve', '--config', writeConfig(other, { receipts })]);
  expect(second.code).toBe(1);
  expect(second.stderr).toContain(`${log} is used by `);
  await first.kill('SIGKILL');
  const again = await ReceiverProcess.start(config);
  expect(await post(again, 1)).toContain('leaf=1,');
});

test('a reload does not change the name or the key of a running log, and a start with another key is refused', async () => {
  const { folder, config } = await configured();
  const receiver = await Receiver.start(config);
  const before = await post(receiver, 0);
  const settings = JSON.parse(readFileSync(config, 'utf8')) as { receipts: Record<string, string> };
  settings.receipts = {
    ...settings.receipts,
    origin: 'made-up.example/other',
    key: join(folder, 'other.key'),
  };
  writeFileSync(config, JSON.stringify(settings));
  receiver.signal('SIGHUP');
  await until('an answer to SIGHUP', () => receiver.stderr.includes('"msg":"reloaded"'));
  expect(receiver.stderr).toMatch(/"key":"receipts","msg":"a change to this key needs a restart"/);
  const after = await post(receiver, 1);
  expect([before, after].map((one) => one?.includes(ORIGIN))).toEqual([true, true]);
  await receiver.kill('SIGTERM');
  settings.receipts['origin'] = ORIGIN;
  writeFileSync(config, JSON.stringify(settings));
  const refused = await millraceProcess(['serve', '--config', config]);
  expect(refused.stderr).toContain(`is not signed by the key of ${ORIGIN}`);
  expect(refused.code).toBe(1);
});
