import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import { FINISH_STEPS } from '../../src/sinks/files/archive.ts';
import { deliver, filesSink, ids, idsFrom, items, signal, tempFolder } from './support.ts';

const CHILD = fileURLToPath(new URL('crash-child.ts', import.meta.url));
const STEPS = ['open', ...FINISH_STEPS];
const FORMS = ['none', 'gzip', 'zstd'] as const;
const PAIRS = STEPS.flatMap((step) => FORMS.map((form) => [step, form] as const));

/** Sends batches of ten until the child kills itself; returns the first numbers of those noted as delivered. */
function crash(path: string, step: string, compress: string = 'gzip', firsts = [1, 11]): number[] {
  const child = spawnSync(process.execPath, [CHILD, path, step, compress, ...firsts.map(String)]);
  expect([child.signal, child.stderr.toString()]).toEqual(['SIGKILL', '']);
  return child.stdout.toString().split('\n').filter(Boolean).map(Number);
}

/** An archive that a writer was killed in right after it had sent. */
function crashed(): string {
  const path = tempFolder();
  crash(path, 'open');
  return path;
}

function lastPartIn(path: string): string {
  const files = readdirSync(join(path, '_open'), { recursive: true, encoding: 'utf8' });
  const parts = files.filter((file) => file.endsWith('.part')).toSorted();
  return join(path, '_open', parts.at(-1) ?? '');
}

describe('files sink after kill -9', () => {
  it.each(PAIRS)(
    'fault 5: at %s, %s: what was not noted, sent again, leaves each line once, and the manifest agrees',
    async (step, form) => {
      const path = tempFolder();
      const noted = crash(path, step, form);
      const { sink } = filesSink(path, { compress: 'gzip', rotate: { bytes: 1024 } });
      await sink.open();
      for (const first of [1, 11, 21].filter((each) => !noted.includes(each))) {
        const results = await sink.send(deliver(first, 10), signal);
        expect(results).toEqual(Array.from({ length: 10 }, () => ({ status: 'delivered' })));
      }
      await sink.close(signal);
      expect((await ids(path)).sort()).toEqual(idsFrom(1, 30).toSorted());
      expect(await verifyArchive(path)).toMatchObject({ records: 30, differences: [], notes: [] });
    },
  );

  it.each(STEPS)(
    'fault 5: three crashes in a row at %s, each before the next delivery is noted',
    async (step) => {
      const path = tempFolder();
      let waiting = [1, 11];
      for (const next of [21, 31, 41]) {
        const noted = crash(path, step, 'gzip', waiting);
        waiting = [...waiting.filter((first) => !noted.includes(first)), next];
      }
      const { sink } = filesSink(path);
      await sink.open();
      for (const first of waiting) await sink.send(deliver(first, 10), signal);
      await sink.close(signal);
      const found = await ids(path);
      expect(found.toSorted()).toEqual(idsFrom(1, 50).toSorted());
      expect((await verifyArchive(path)).differences).toEqual([]);
    },
  );

  it('forgets recovered ids once their file is finished, and never skips a replay or another destination', async () => {
    const path = crashed();
    const { sink } = filesSink(path);
    await sink.open();
    await sink.send(deliver(11, 1, { handling: { replayId: 'r1' } }), signal);
    await sink.send(deliver(11, 1, {}, 'meals'), signal);
    await sink.send(deliver(11, 1), signal);
    expect((await ids(path, true)).filter((id) => id === 'msg_11')).toHaveLength(3);
    await sink.close(signal);
    const again = filesSink(path);
    await again.sink.open();
    await again.sink.send(deliver(11, 1), signal);
    await again.sink.close(signal);
    expect((await ids(path)).filter((id) => id === 'msg_11')).toHaveLength(4);
  });

  it('never takes an event for one that a crash left behind, whose id it has with other bytes or another user', async () => {
    const path = crashed();
    const { sink } = filesSink(path);
    await sink.open();
    const [{ event, destination } = { event: null! }] = deliver(11, 1);
    const body = Buffer.from(JSON.stringify({ ...JSON.parse(String(event.body)), other: 'bytes' }));
    for (const changes of [{}, { body }, { body }, { user: 'another-user' }])
      await sink.send([{ event: { ...event, ...changes }, destination: destination ?? null }], signal);
    await sink.close(signal);
    expect((await ids(path)).filter((id) => id === 'msg_11')).toHaveLength(4);
  });

  it('fault 5: cuts torn ends off parts and manifest, removes temporary files, and says so', async () => {
    const path = crashed();
    const part = lastPartIn(path);
    const whole = readFileSync(part).length;
    appendFileSync(part, '{"id":"msg_99","source":"webh');
    writeFileSync(part.replace(/part$/, 'tmp'), 'half a file');
    appendFileSync(join(path, '_manifest.jsonl'), '{"file":"dt=');
    const { sink, context } = filesSink(path);
    await sink.open();
    expect(readFileSync(part)).toHaveLength(whole);
    expect(existsSync(part.replace(/part$/, 'tmp'))).toBe(false);
    expect(context.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
      'removed an incomplete last line from the manifest',
      'removed an incomplete end from an unfinished file',
    ]);
    await sink.close(signal);
    expect((await verifyArchive(path)).differences).toEqual([]);
  });

  it('fault 2: takes what follows a hole, as a power cut leaves it, for not written', async () => {
    const path = crashed();
    const part = lastPartIn(path);
    const whole = readFileSync(part);
    truncateSync(part, whole.length + 4096);
    appendFileSync(part, whole.subarray(0, whole.indexOf(10) + 1));
    const { sink } = filesSink(path);
    await sink.open();
    expect(readFileSync(part).equals(whole)).toBe(true);
    await sink.close(signal);
  });

  it('fault 4: a sector of zeros before whole records is damage: these were acknowledged, and stay', async () => {
    const path = crashed();
    const part = lastPartIn(path);
    const all = [...readFileSync(part, 'utf8').matchAll(/"id":"(msg_\d+)"/g)].map(([, id]) => id);
    const bytes = readFileSync(part).fill(0, 512, 1024);
    const kept = [...String(bytes).matchAll(/"id":"(msg_\d+)"/g)].map(([, id]) => id);
    expect([kept.length > 1, kept.length < all.length, kept.at(-1)]).toEqual([true, true, all.at(-1)]);
    writeFileSync(part, bytes);
    const { sink, context } = filesSink(path);
    await sink.open();
    expect(readFileSync(part).equals(bytes)).toBe(true);
    expect(context.lines.filter(({ level }) => level === 'error')).not.toEqual([]);
    await sink.close(signal);
    const found = (await items(path)).flatMap((item) => (item.kind === 'record' ? [item.record.id] : []));
    for (const id of kept.slice(-3)) expect(found).toContain(id);
  });

  it('fault 4: a flipped bit in an unfinished file stops neither the start nor the other records', async () => {
    const path = crashed();
    const part = lastPartIn(path);
    const bytes = readFileSync(part);
    bytes.write('?', bytes.indexOf(10) + 1);
    writeFileSync(part, bytes);
    const { sink, context } = filesSink(path);
    await sink.open();
    expect(context.lines).toContainEqual(
      expect.objectContaining({ level: 'error', fields: { path: part, line: 2 } }),
    );
    await sink.close(signal);
    const { differences } = await verifyArchive(path);
    expect(differences).toContainEqual(expect.objectContaining({ code: 'record_invalid', line: 2 }));
  });
});
