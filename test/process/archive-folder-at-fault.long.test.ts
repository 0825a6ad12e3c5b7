import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { SinkStatus } from '../../src/core/operations.ts';
import { lacksMount } from '../support/mounts.ts';
import { Place } from '../support/place.ts';
import { skipped } from '../support/requirements.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

const prepared = (rotate: object = {}): Promise<Place> =>
  Place.make((folder) => ({
    sinks: { archive: { type: 'files', path: join(folder, 'archive'), rotate } },
    delivery: { retryInitial: '50ms', retryMax: '500ms' },
  }));

const sinkOf = async (receiver: Serving): Promise<SinkStatus> => (await receiver.status()).sinks[0]!;

/** @returns the trouble, once the sink is in it */
function trouble(receiver: Serving, code: string): Promise<object & { readonly detail: string }> {
  return until(`the trouble ${code}`, async () =>
    (await sinkOf(receiver)).troubles.find((one) => one.code === code),
  );
}

const deadLetters = async (place: Place): Promise<{ id: string; code: string }[]> =>
  place.documents('dead-letters', 'list', '--limit', '1000');

/** Ids in the archive after an orderly end. */
async function idsAfter(place: Place, receiver: Serving): Promise<string[]> {
  await receiver.stop();
  return [...(await place.archived()).keys()].toSorted();
}

type Harm = (archive: string, parts: readonly string[]) => void;
const HARMS: Readonly<Record<string, Harm>> = {
  'an open part gone': (_, parts) => parts.forEach((part) => unlinkSync(part)),
  'an open part replaced': (_, parts) => {
    for (const part of parts) unlinkSync(part);
    for (const part of parts) writeFileSync(part, 'x'.repeat(1_000_000));
  },
  'an open part cut': (_, parts) => parts.forEach((part) => writeFileSync(part, '')),
  'the folder of open parts removed': (archive) => rmSync(join(archive, '_open'), { recursive: true }),
  'an archive folder removed': (archive) => rmSync(archive, { recursive: true }),
  'an archive folder replaced': (archive) => {
    renameSync(archive, `${archive}.old`);
    mkdirSync(archive);
  },
};
const QUIET = ['an open part gone', 'the folder of open parts removed', 'an archive folder removed'];

test.each([
  ...Object.entries(HARMS).map(([what, harm]) => [what, true, harm] as const),
  ...QUIET.map((what) => [what, false, HARMS[what]!] as const),
])(
  '%s, while events come: %s: said everywhere, nothing counted as delivered that is not there',
  async (_, whileEventsCome, harm) => {
    const place = await prepared();
    const archive = place.at('archive');
    const receiver = await place.start();
    const before = [...(await receiver.send(30)).keys()].toSorted();
    const later: string[] = [];
    await receiver.drained();
    harm(
      archive,
      globSync('_open/**/*.part', { cwd: archive }).map((part) => join(archive, part)),
    );
    if (whileEventsCome) later.push(...(await receiver.send(10, 30)).keys());
    expect(await trouble(receiver, 'file_lost')).toMatchObject({ lost: before.length });
    const dead = await deadLetters(place);
    expect(dead.map(({ id }) => id).toSorted()).toEqual(before);
    expect(new Set(dead.map(({ code }) => code))).toEqual(new Set(['file_lost']));

    const status = await place.ok('status');
    expect(status).toMatch(/archive +running, in trouble/);
    expect(status).toMatch(/file_lost since 20\d\d-/);
    expect(status).toContain('30 delivered records, received from 20');
    expect(status).toContain('millrace dead-letters retry --sink archive');
    const { checks } = (await (await receiver.ask('/readyz?verbose')).json()) as {
      checks: { name: string }[];
    };
    expect(checks.find(({ name }) => name === 'sink archive')).toMatchObject({
      ok: false,
      troubles: expect.arrayContaining([expect.objectContaining({ code: 'file_lost' })]),
    });
    const metrics = await receiver.metrics();
    expect(metrics).toMatch(/^millrace_sink_lost_records\{sink="archive"\} 30$/m);
    expect(metrics).toMatch(/^millrace_sink_trouble_since_timestamp_seconds\{.*code="file_lost".*\} 1\d{9}/m);

    await place.ok('dead-letters', 'retry', '--sink', 'archive', '--all');
    later.push(...(await receiver.send(5, 40)).keys());
    await receiver.drained();
    expect(await idsAfter(place, receiver)).toEqual([...before, ...later].toSorted());
  },
);

test('an archive folder removed is made again without a restart, and says so', async () => {
  const place = await prepared();
  const receiver = await place.start();
  rmSync(place.at('archive'), { recursive: true });
  expect((await trouble(receiver, 'folder_replaced')).detail).toContain(
    'millrace replay journal --to archive',
  );
  expect(globSync('_open/*/lock', { cwd: place.at('archive') })).toHaveLength(1);
  const sent = await receiver.send(10);
  await receiver.drained();
  expect(await idsAfter(place, receiver)).toEqual([...sent.keys()].toSorted());
});

const noMount = lacksMount();

test.skipIf(noMount !== null)(
  `an archive folder made read-only: said everywhere until it can be written again, nothing lost${skipped(noMount)}`,
  async () => {
    const place = await prepared({ every: '1s' });
    const archive = place.at('archive');
    let receiver = await place.start();
    const ids = [...(await receiver.send(10)).keys()];
    await receiver.drained();
    execFileSync('mount', ['--bind', archive, archive]);
    let mounted = true;
    const unmount = (): void => {
      if (mounted) execFileSync('umount', ['--lazy', archive]);
      mounted = false;
    };
    onTestFinished(unmount);
    execFileSync('mount', ['-o', 'remount,bind,ro', archive]);
    expect((await trouble(receiver, 'folder_unusable')).detail).toContain('read-only file system');
    expect(await place.ok('status')).toContain('folder_unusable since');
    expect(await receiver.metrics()).toMatch(/code="folder_unusable"/);
    const tried = () =>
      until('the sink to be tried', async () => (await sinkOf(receiver)).lastError?.includes('EROFS'));
    ids.push(...(await receiver.send(10, 10)).keys());
    await tried();
    // A restart in between ends nothing but the sink's work.
    await receiver.kill('SIGTERM');
    receiver = await place.start();
    await tried();
    ids.push(...(await receiver.send(10, 20)).keys());
    unmount();
    await until('the trouble to be over', async () => {
      const { troubles, mode } = await sinkOf(receiver);
      return mode === 'running' && troubles.length === 0;
    });
    await receiver.drained();
    expect(await idsAfter(place, receiver)).toEqual(ids.toSorted());
    expect(await deadLetters(place)).toEqual([]);
  },
);
