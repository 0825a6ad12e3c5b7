import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { listArchive } from '../../../src/archive/places.ts';
import type { ReconcileReport, SinkAccount } from '../../../src/replay/reconcile/report.ts';
import { madeUpEvent } from '../../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { Receiver } from '../../support/receiver.ts';
import { postSigned } from '../../support/signed-events.ts';
import { until } from '../../support/until.ts';
import { runReconcile } from './support.ts';

/** A sink of a user's own: it refuses meals, and is down for lab tests. */
const FUSSY = `
export const parseOptions = () => ({});
export const createSink = () => ({
  limits: { batchCount: 1, batchBytes: 1e6, eventBytes: 1e6, inFlight: 1, order: 'none', batchBy: 'mixed' },
  open: async () => {},
  send: async ([{ event }]) => {
    if (event.type.startsWith('labtest.')) return [{ status: 'retry', reason: 'made-up trouble' }];
    if (event.type.startsWith('daily.data.meal.')) return [{ status: 'refused', code: 'no_meals', reason: 'made up' }];
    return [{ status: 'delivered' }];
  },
  close: async () => {},
});`;

interface Ran {
  readonly code: number;
  readonly report: ReconcileReport;
  readonly sink: (name: string) => SinkAccount;
}

async function run(config: string, ...args: readonly string[]): Promise<Ran> {
  const { exit: code, stdout } = await runReconcile(['--config', config, '--json', ...args]);
  const report = JSON.parse(stdout) as ReconcileReport;
  const sink = (name: string): SinkAccount => {
    const found = report.sinks.find((one) => one.sink === name);
    if (found === undefined) throw new Error(`no sink ${name}`);
    const { received, missing, duplicates, quarantined, delivered, waiting, dead, dropped } = found;
    const { erased, elsewhere, untold } = found;
    const sum =
      duplicates + quarantined + delivered + waiting + dead + dropped + erased + elsewhere + untold + missing;
    expect(sum).toBe(received);
    return found;
  };
  return { code, report, sink };
}

const COUNT = 27;
/** Of the first made-up event, and of no other. */
const FIRST_USER = '00000000-0000-4000-8000-000000001000';

/** A receiver that has had 27 events, three of each type, four of them twice, and two invalid ones. */
async function filled(folder: string): Promise<{ config: string; receiver: Receiver; ids: string[] }> {
  writeFileSync(join(folder, 'fussy.mjs'), FUSSY);
  const config = writeConfig(folder, {
    sinks: { fussy: { type: './fussy.mjs' }, archive: { type: 'files', path: join(folder, 'archive') } },
    routes: [
      { match: ['daily.', 'labtest.'], to: ['fussy', 'archive'] },
      { match: ['*'], to: ['archive'] },
    ],
    // The sink that is down would have its time otherwise.
    shutdown: { deadline: '1s' },
  });
  const receiver = await Receiver.start(config);
  const ids: string[] = [];
  for (let n = 0; n < COUNT; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    if (n < 4) expect((await postSigned(receiver.url, body, { id })).status).toBe(200);
    ids.push(id);
  }
  for (const body of ['[1]', '{}']) await postSigned(receiver.url, Buffer.from(body));
  await until('the archive to be done', async () => {
    const { journal, sinks } = await receiver.status();
    const dead = sinks.find(({ sink }) => sink === 'fussy')?.dead ?? 0;
    return dead === 6 && journal.cursors.find(({ sink }) => sink === 'archive')?.backlog === 0;
  });
  return { config, receiver, ids };
}

test('every delivery is accounted for, beside a receiver and without one', async () => {
  const folder = await temporaryFolder();
  const { config, receiver } = await filled(folder);
  const running = await run(config);
  expect(running.report.differences).toEqual([]);
  expect(running.code).toBe(0);
  const archive = running.sink('archive');
  expect(archive).toMatchObject({
    counted_from: 'files',
    received: 33,
    delivered: 27,
    duplicates: 4,
    quarantined: 2,
  });
  expect(running.sink('fussy')).toMatchObject({ counted_from: 'journal', dead: 6, elsewhere: 15 });
  const { waiting, delivered } = running.sink('fussy');
  expect(waiting).toBeGreaterThanOrEqual(3);
  expect(waiting + delivered).toBe(6);
  await receiver.kill('SIGTERM');
  expect((await run(config)).sink('archive')).toEqual(archive);

  const other = await run(config, '--since', '2026-01-01', '--until', '2026-01-02T00:30Z');
  expect(other.code).toBe(0);
  expect(other.report).toMatchObject({
    since: '2026-01-01T00:00:00.000Z',
    until: '2026-01-02T01:00:00.000Z',
  });
  expect(other.sink('archive')).toMatchObject({ received: 0, delivered: 0, copies: 0 });

  const [kept] = (await millrace(['quarantine', 'list', '--config', config, '--json'])).stdout.split('\n');
  const { key } = JSON.parse(kept ?? '') as { key: number };
  await millrace(['quarantine', 'drop', String(key), '--config', config]);
  await millrace(['dead-letters', 'drop', '--all', '--config', config]);
  const after = await run(config);
  expect(after.report.differences).toEqual([]);
  expect(after.sink('archive')).toMatchObject({ quarantined: 1, dropped: 1, delivered: 27 });
  expect(after.sink('fussy')).toMatchObject({ dead: 0, dropped: 7 });

  const { code, stderr } = await millrace(['erase', '--now', FIRST_USER, '--config', config]);
  expect(code, stderr).toBe(0);
  const without = await run(config);
  expect(without.report.differences).toEqual([]);
  expect(without.sink('archive')).toMatchObject({ received: 33, delivered: 26, erased: 1 });
});

test('while an erasure runs, events that it has not reached yet are not foreign', async () => {
  const folder = await temporaryFolder();
  const { config, receiver } = await filled(folder);
  await receiver.kill('SIGTERM');
  // As a kill leaves it that comes when the journal is done, and the archive is not.
  const requests = join(folder, 'erasure', 'requests');
  expect((await millrace(['erase', FIRST_USER, '--config', config])).code).toBe(0);
  const [request = ''] = readdirSync(requests);
  const asked = JSON.parse(readFileSync(join(requests, request), 'utf8')) as object;
  cpSync(join(folder, 'archive'), join(folder, 'before'), { recursive: true });
  expect((await millrace(['erase', '--now', FIRST_USER, '--config', config])).code).toBe(0);
  rmSync(join(folder, 'archive'), { recursive: true });
  cpSync(join(folder, 'before'), join(folder, 'archive'), { recursive: true });
  const begun = { ...asked, begun_at: new Date().toISOString() };
  writeFileSync(join(requests, request), JSON.stringify(begun));
  const { code, report } = await run(config);
  expect(report.differences).toEqual([]);
  expect(report.notes).toEqual([expect.stringContaining('an erasure has begun and is not done')]);
  expect(code).toBe(0);

  rmSync(join(requests, request));
  const restored = await run(config);
  expect(restored.code).toBe(4);
  expect(restored.report.differences).toMatchObject([{ code: 'not_received', count: 1 }]);
});

test('what is gone from the files is named, and ends with 4', async () => {
  const folder = await temporaryFolder();
  const { config, receiver, ids } = await filled(folder);
  await receiver.kill('SIGTERM');
  const root = join(folder, 'archive');
  const [file = ''] = (await listArchive(root)).files;
  const lines = gunzipSync(readFileSync(join(root, file)))
    .toString()
    .split('\n');
  writeFileSync(join(root, file), gzipSync(lines.toSpliced(5, 1).join('\n')));
  const { code, report, sink } = await run(config);
  expect(code).toBe(4);
  expect(report.differences).toEqual([
    {
      code: 'missing',
      sink: 'archive',
      count: 1,
      ids: [ids[5]],
      detail: expect.stringContaining(`not in the files of ${root}; if the path was another one`),
    },
  ]);
  expect(sink('archive')).toMatchObject({ delivered: 26, missing: 1 });

  // A record that was never received, one that cannot be read, and one twice.
  const stranger = (lines[0] ?? '').replace(ids[0] ?? '?', 'msg_made_up_stranger');
  writeFileSync(join(root, file), gzipSync([stranger, 'not a record', lines[0], ...lines].join('\n')));
  const again = await run(config);
  expect(again.report.differences.map(({ code: what, ids: named }) => [what, named])).toEqual([
    ['unreadable', []],
    ['not_received', ['msg_made_up_stranger']],
  ]);
  expect(again.report.differences.at(-1)?.detail).toContain(`files of ${root}, but never counted`);
  expect(again.report.differences.at(-1)?.detail).toContain('another receiver that writes there');
  expect(again.sink('archive')).toMatchObject({ delivered: 27, copies: 1 });
  rmSync(root, { recursive: true });
  const { stderr, code: gone } = await millrace(['reconcile', '--config', config]);
  expect(gone).toBe(1);
  expect(stderr).toContain(root);
});
