import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

interface Shown {
  readonly head: string;
  readonly bytes: number;
  readonly lost: number;
}

/** What `/readyz?verbose` says of the archive, once it says anything. */
async function shown({ adminUrl }: Serving): Promise<Shown | null> {
  const { body } = await request(`${adminUrl}/readyz?verbose`);
  const { archives } = (await body.json()) as { archives: (Shown & { sink: string })[] };
  return archives.find(({ sink }) => sink === 'archive') ?? null;
}

function lastLineOf(manifest: string): { head: string; bytes: number } {
  const text = readFileSync(manifest, 'utf8');
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return { head: createHash('sha256').update(line).digest('hex'), bytes: Buffer.byteLength(text) };
}

it('readiness and metrics show the head of the manifest; after an older one is restored they say so, and verifying too', async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const manifest = join(archive, '_manifest.jsonl');
  const config = writeConfig(folder, {
    sinks: { archive: { type: 'files', path: archive, rotate: { bytes: '1KiB' } } },
  });
  const first = await Receiver.start(config);
  for (let n = 0; n < 8; n += 1) {
    const { id, body } = madeUpEvent(n, 'daily.data.meal.created');
    expect((await postSigned(first.url, body, { id })).status).toBe(202);
  }
  await first.drained();
  const before = await until('a head that is the manifest’s', async () => {
    const now = await shown(first);
    return now !== null && now.bytes > 0 && now.head === lastLineOf(manifest).head ? now : null;
  });
  expect(before).toMatchObject({ ...lastLineOf(manifest), lost: 0 });
  await first.kill('SIGTERM');
  const lines = readFileSync(manifest, 'utf8').trimEnd().split('\n');
  const { head } = lastLineOf(manifest);
  writeFileSync(manifest, `${lines.slice(0, -1).join('\n')}\n`);
  const second = await Receiver.start(config);
  expect(await shown(second)).toMatchObject({ lost: 1 });
  const { body } = await request(`${second.adminUrl}/metrics`);
  const text = await body.text();
  expect(text).toContain('millrace_archive_heads_lost{sink="archive"} 1');
  const digits = Number.parseInt(lastLineOf(manifest).head.slice(0, 12), 16);
  expect(text).toContain(`millrace_archive_head{sink="archive"} ${digits}`);
  const log = second.logLines().map(({ msg }) => String(msg));
  expect(log.join('\n')).toContain('does not hold its noted head');
  await second.kill('SIGTERM');
  // By what was noted here, and by what somebody noted of the metric.
  for (const how of [
    ['--config', config],
    ['--head', head.slice(0, 12)],
  ]) {
    const ended = await millrace(['archive', 'verify', archive, ...how]);
    expect([ended.code, ended.stdout]).toEqual([4, expect.stringContaining('head_missing')]);
  }
});
