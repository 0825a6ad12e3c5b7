import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Place, printing } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

interface Shown {
  readonly sink: string;
  readonly head: string;
  readonly bytes: number;
  readonly lost: number;
}

function archiving(folder: string): object {
  return { sinks: { archive: { type: 'files', path: join(folder, 'archive'), rotate: { bytes: '1KiB' } } } };
}

/** What `/readyz?verbose` says of the archive, once it says anything. */
async function shown(receiver: Serving): Promise<Shown | undefined> {
  const { archives } = (await (await receiver.ask('/readyz?verbose')).json()) as { archives: Shown[] };
  return archives.find(({ sink }) => sink === 'archive');
}

function lastLineOf(manifest: string): { head: string; bytes: number } {
  const text = readFileSync(manifest, 'utf8');
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return { head: createHash('sha256').update(line).digest('hex'), bytes: Buffer.byteLength(text) };
}

test('readiness and metrics show the head of the manifest; after an older one is restored they say so, and verifying too', async () => {
  const place = await Place.make(archiving);
  const manifest = place.at('archive', '_manifest.jsonl');
  const first = await place.start();
  await first.send(8, 0, 'daily.data.meal.created');
  await first.drained();
  const before = await until('a head that is the manifest’s', async () => {
    const now = await shown(first);
    return now !== undefined && now.bytes > 0 && now.head === lastLineOf(manifest).head ? now : null;
  });
  expect(before).toMatchObject({ ...lastLineOf(manifest), lost: 0 });
  await first.stop();
  const { head } = lastLineOf(manifest);
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(/[^\n]*\n$/, ''));
  const second = await place.start();
  expect(await shown(second)).toMatchObject({ lost: 1 });
  const metrics = await second.metrics();
  expect(metrics).toContain('millrace_archive_heads_lost{sink="archive"} 1');
  const digits = Number.parseInt(lastLineOf(manifest).head.slice(0, 12), 16);
  expect(metrics).toContain(`millrace_archive_head{sink="archive"} ${digits}`);
  expect(second.stderr).toContain('does not hold its noted head');
  await second.stop();
  // By what was noted here, and by what somebody noted of the metric.
  for (const how of [[], ['--head', head.slice(0, 12)]])
    expect(await place.run('archive', 'verify', place.at('archive'), ...how)).toMatchObject(
      printing(4, 'head_missing'),
    );
});

test('a noted head that is not as it was signed is named until a person has removed it', async () => {
  const place = await Place.make(archiving);
  const first = await place.start();
  await first.send(3, 0, 'daily.data.meal.created');
  await first.stop();
  const [name = ''] = readdirSync(place.at('erasure', 'heads'));
  const note = place.at('erasure', 'heads', name);
  writeFileSync(note, readFileSync(note, 'utf8').replace('"bytes":', '"bytes":1'));
  const second = await place.start();
  expect(second.stderr).toContain(`${name} is not as it was signed`);
  await second.send(3, 3, 'daily.data.meal.created');
  await second.stop();
  const verify = ['archive', 'verify', place.at('archive')];
  expect(await place.run(...verify)).toMatchObject(printing(4, `${name}.forged: head_forged`));
  rmSync(`${note}.forged`);
  expect(await place.run(...verify)).toMatchObject({ code: 0 });
});

test('a signing key that is gone is not made again where it has signed', async () => {
  const place = await Place.make(archiving);
  await (await place.start()).stop();
  const [key, away] = [place.at('erasure', 'manifest.key'), place.at('away')];
  renameSync(key, away);
  await expect(place.start()).rejects.toThrow('manifest.key is not there');
  renameSync(away, key);
  const { stdout } = await place.run('keys', 'public');
  renameSync(key, away);
  place.edit((config) => Object.assign(config, { proof: { trust: [stdout.trim()] } }));
  await (await place.start()).stop();
  expect(await place.run('archive', 'verify', place.at('archive'))).toMatchObject({ code: 0 });
});
