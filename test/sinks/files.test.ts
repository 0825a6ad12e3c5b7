import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { open as openFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import { Part } from '../../src/sinks/files/part.ts';
import type { FilesHooks } from '../../src/sinks/files/sink.ts';
import type { FinishStep } from '../../src/sinks/files/archive.ts';
import { deliver, filesSink, ids, signal, tempFolder } from './support.ts';
import { openFiles } from '../support/open-files.ts';

afterEach(() => void vi.restoreAllMocks());

/** An archive in a folder of the test, and an open sink for it. */
async function scene(options: object = {}, hooks: FilesHooks = {}) {
  const path = tempFolder();
  const { sink, context } = filesSink(path, options, hooks);
  await sink.open();
  /** Closes the sink, and tells what its archive has then. */
  const end = async (): Promise<{ files: number; records: number; differences: readonly object[] }> => {
    await sink.close(signal);
    const { files, records, differences } = await verifyArchive(path);
    return { files, records, differences };
  };
  return { path, sink, context, end };
}

const five = <T>(value: T): T[] => Array.from({ length: 5 }, () => value);
const DELIVERED = { status: 'delivered' };

async function filesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
    .filter((file) => !/lock(?:-journal)?$/.test(file))
    .sort();
}

/** Until something that runs in the background has happened. */
async function until(check: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await check())) await new Promise((resolve) => setImmediate(resolve));
}

/** The next call of each of these methods of file handles fails. @returns the error, and the spies */
async function failOnce(path: string, ...methods: ('datasync' | 'truncate')[]) {
  await using probe = await openFile(join(path, '_manifest.jsonl'));
  const prototype: typeof probe = Object.getPrototypeOf(probe);
  const error = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
  return { error, spies: methods.map((name) => vi.spyOn(prototype, name).mockRejectedValueOnce(error)) };
}

function endOnceListed(step: FinishStep): void {
  if (step === 'listed') throw new Error('made-up end of the process');
}

describe('files sink', () => {
  it('keeps a file out of sight of *.ndjson* until it is complete', async () => {
    const { path, sink, end } = await scene();
    await sink.send(deliver(1, 5), signal);
    expect(await filesIn(path)).toEqual([
      '_manifest.jsonl',
      expect.stringMatching(/^_open\/[0-9a-f]{12}\/dt=2026-11-21\/20261121T031502124Z-[0-9a-f]{12}\.part$/),
      expect.stringMatching(/^_open\/[0-9a-f]{12}\/lock-owner$/),
    ]);
    expect(await end()).toEqual({ files: 1, records: 5, differences: [] });
    expect(await filesIn(path)).toEqual([
      '_manifest.jsonl',
      expect.stringMatching(/^dt=2026-11-21\/20261121T031502124Z-[0-9a-f]{12}\.ndjson\.gz$/),
    ]);
  });

  it('starts a new file before the batch that comes after the size limit', async () => {
    const { sink, end } = await scene({ rotate: { bytes: 1024 } });
    for (let i = 0; i < 4; i += 1) await sink.send(deliver(i * 5 + 1, 5), signal);
    expect(await end()).toEqual({ files: 4, records: 20, differences: [] });
  });

  it('fault 17: finishes a file by age on the monotonic clock, whatever the wall clock does', async () => {
    const { path, sink, context, end } = await scene({ rotate: { every: '1h' } });
    await sink.send(deliver(1, 5), signal);
    context.clock.offset = 7_200_000;
    context.clock.advance(3_599_999);
    expect((await filesIn(path)).filter((file) => file.includes('.ndjson'))).toEqual([]);
    context.clock.offset = 0;
    context.clock.advance(1);
    await until(async () => (await verifyArchive(path)).records === 5);
    expect(await end()).toEqual({ files: 1, records: 5, differences: [] });
    expect(context.clock.pending).toBe(0);
  });

  it('closes every open file at a flush, and names the ones it could not close', async () => {
    let full = true;
    const onStep = (step: string): void => {
      if (full && step === 'written') throw new Error('made-up full disk');
    };
    const path = tempFolder();
    const { sink } = filesSink(path, { partitionBy: ['type'] }, { onStep });
    await expect(sink.flush()).rejects.toThrow('is not open');
    await sink.open();
    expect(await sink.flush()).toEqual({ files: [], failed: [] });
    await sink.send(deliver(1, 3), signal);
    const failed = [expect.stringContaining('made-up full disk')];
    expect(await sink.flush()).toEqual({ files: [], failed });
    full = false;
    await sink.send(deliver(4, 2), signal);
    const { files } = await sink.flush();
    expect(files.map(({ records }) => records).toSorted((a, b) => a - b)).toEqual([2, 3]);
    expect(await verifyArchive(path)).toMatchObject({ files: 2, records: 5, differences: [] });
    await sink.close(signal);
  });

  it('puts events into Hive folders, destinations first', async () => {
    const { path, sink, end } = await scene({
      partitionBy: ['date', 'hour', 'type', 'team'],
      compress: 'none',
    });
    await sink.send([...deliver(1, 1), ...deliver(2, 1, { team: null }, 'meals')], signal);
    await end();
    expect((await filesIn(path)).map((file) => file.replace(/\/[^/]*$/, ''))).toEqual([
      '_manifest.jsonl',
      'dt=2026-11-21/hour=03/type=daily.data.meal.created/team=team-1',
      'meals/dt=2026-11-21/hour=03/type=daily.data.meal.created/team=__HIVE_DEFAULT_PARTITION__',
    ]);
  });

  it('keeps few files open, whatever the number of partitions', async () => {
    const { sink, end } = await scene({ partitionBy: ['team'] }, { openFiles: 3 });
    const batch = Array.from({ length: 40 }, (_, i) => deliver(i + 1, 1, { team: `team-${i % 20}` })).flat();
    for (let i = 0; i < 40; i += 8) await sink.send(batch.slice(i, i + 8), signal);
    await until(() => openFiles().filter((file) => file.includes('.part')).length <= 3);
    expect(await end()).toEqual({ files: 20, records: 40, differences: [] });
  });

  it('leaves unfinished files for the next start when close may not take its time', async () => {
    const { path, sink } = await scene();
    await sink.send(deliver(1, 5), signal);
    await sink.close(AbortSignal.abort());
    expect((await verifyArchive(path)).notes).toHaveLength(1);
    const second = filesSink(path).sink;
    await second.open();
    await second.close(signal);
    expect(await verifyArchive(path)).toMatchObject({ files: 1, records: 5, differences: [], notes: [] });
  });

  it('lets two writers share an archive', async () => {
    const { path, sink, end } = await scene();
    const other = filesSink(path).sink;
    await sink.send(deliver(1, 5), signal);
    await other.open();
    await other.send(deliver(6, 5), signal);
    await other.close(signal);
    expect(await end()).toEqual({ files: 2, records: 10, differences: [] });
  });

  it('fault 7: does not claim what a failed sync may have lost, and writes it again on a new handle', async () => {
    const { path, sink, end } = await scene();
    await sink.send(deliver(1, 5), signal);
    const { error, spies } = await failOnce(path, 'datasync');
    expect(await sink.send(deliver(6, 5), signal)).toEqual(
      five({ status: 'retry', reason: error.message, sink: true }),
    );
    expect(await sink.send(deliver(6, 5), signal)).toEqual(five(DELIVERED));
    expect(new Set(spies[0]?.mock.contexts).size).toBe(2);
    vi.restoreAllMocks();
    expect(await end()).toEqual({ files: 1, records: 10, differences: [] });
  });

  it('fault 7: takes nothing of a failed write for delivered when its part outlives the finished file', async () => {
    const { path, sink } = await scene({}, { onStep: endOnceListed });
    await sink.send(deliver(1, 5), signal);
    // The records are written, but neither synced nor cut off again.
    const { error, spies } = await failOnce(path, 'datasync', 'truncate');
    expect(await sink.send(deliver(6, 5), signal)).toEqual(
      five({ status: 'retry', reason: error.message, sink: true }),
    );
    expect(spies[1]).toHaveBeenCalledOnce();
    vi.restoreAllMocks();
    await sink.close(signal);
    expect((await filesIn(path)).filter((file) => file.endsWith('.part'))).toHaveLength(1);
    const { sink: next } = filesSink(path);
    await next.open();
    expect(await next.send(deliver(6, 5), signal)).toEqual(five(DELIVERED));
    await next.close(signal);
    expect(await ids(path)).toHaveLength(10);
    expect((await verifyArchive(path)).differences).toEqual([]);
  });

  it('fault 28: what it logs about hostile names is one line, and holds no body', async () => {
    const { path, sink, context } = await scene({ partitionBy: ['team'], rotate: { bytes: 1024 } });
    writeFileSync(join(path, 'a%0D%0A%1B%5B31m'), 'in the way');
    await sink.send(deliver(1, 1, { body: Buffer.from('{"health":1}') }, 'a\r\n\u001b[31m'), signal);
    await sink.close(signal);
    const logged = context.lines.map((line) => JSON.stringify(line));
    expect(logged.some((line) => line.includes('a%0D%0A%1B%5B31m'))).toBe(true);
    for (const line of logged) expect(line).not.toMatch(/\\[rn]|\\u001b|health/);
  });

  it('continues when somebody has deleted an unfinished file, and says so', async () => {
    const { path, sink, context } = await scene({ partitionBy: ['team'] }, { openFiles: 1 });
    await sink.send(deliver(1, 1, { team: 'a' }), signal);
    await sink.send(deliver(2, 1, { team: 'b' }), signal);
    execFileSync('find', [path, '-name', '*.part', '-delete']);
    expect(await sink.send(deliver(3, 1, { team: 'a' }), signal)).toEqual([DELIVERED]);
    await sink.close(signal);
    const errors = context.lines.filter(({ level }) => level === 'error').map(({ message }) => message);
    expect(errors).toEqual(Array(2).fill('an unfinished archive file disappeared'));
    expect(await ids(path)).toEqual(['msg_3']);
  });

  it('keeps the part and tries again when finishing fails', async () => {
    const { path, sink, context, end } = await scene({ rotate: { every: '1h' } });
    await sink.send(deliver(1, 5), signal);
    writeFileSync(join(path, 'dt=2026-11-21'), 'in the way');
    context.clock.advance(3_600_000);
    await until(() => sink.troubles().length > 0);
    const errors = (): unknown[] => context.lines.filter(({ level }) => level === 'error');
    const since = context.clock.now();
    const failing = [{ code: 'unfinished', since, detail: expect.stringContaining('5 records') }];
    expect([errors().length, sink.troubles()]).toEqual([1, failing]);
    context.clock.advance(30_000);
    await until(() => errors().length === 2);
    // Since when it first failed, however often it is tried.
    expect(sink.troubles()).toEqual(failing);
    rmSync(join(path, 'dt=2026-11-21'));
    context.clock.advance(30_000);
    await until(async () => (await verifyArchive(path)).records === 5);
    await until(() => sink.troubles().length === 0);
    expect(await end()).toEqual({ files: 1, records: 5, differences: [] });
  });

  it('lists no empty file of 1970 after an append that failed', async () => {
    const { path, sink, end } = await scene();
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    vi.spyOn(Part.prototype, 'append').mockRejectedValueOnce(full);
    expect(await sink.send(deliver(1, 5), signal)).toMatchObject(five({ status: 'retry' }));
    vi.restoreAllMocks();
    expect(await end()).toEqual({ files: 0, records: 0, differences: [] });
    expect((await filesIn(path)).filter((file) => file.endsWith('.part'))).toEqual([]);
  });
});

describe('files sink: what lies in its way', () => {
  it('fault 30: follows no symbolic link and no FIFO', async () => {
    const outside = tempFolder();
    const path = tempFolder();
    const { sink, context } = filesSink(path);
    mkdirSync(join(path, '_open', 'abcdefabcdef'), { recursive: true });
    const link = join(path, '_open', 'abcdefabcdef', 'x.part');
    const fifo = join(path, '_open', 'abcdefabcdef', 'y.part');
    writeFileSync(join(outside, 'secret'), 'keep');
    symlinkSync(join(outside, 'secret'), link);
    execFileSync('mkfifo', [fifo]);
    symlinkSync(outside, join(path, 'meals'));
    await sink.open();
    const warned = context.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields['path']);
    expect(warned).toEqual(expect.arrayContaining([link, fifo]));
    await sink.send(deliver(1, 1, {}, 'meals'), signal);
    await sink.close(signal);
    expect(await readdir(outside)).toEqual(['secret']);
    expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('keep');
    const report = await verifyArchive(path);
    expect(report.differences).toContainEqual(
      expect.objectContaining({ code: 'file_not_followed', file: 'meals' }),
    );
    expect(report.notes).toHaveLength(1);
  });

  it.each([
    ['link', (file: string) => symlinkSync('/dev/null', file)],
    ['FIFO', (file: string) => void execFileSync('mkfifo', [file])],
  ])('fault 30: refuses a manifest that is a %s, by name', async (_, make) => {
    const path = tempFolder();
    make(join(path, '_manifest.jsonl'));
    const detail = expect.stringContaining('_manifest.jsonl');
    await expect(filesSink(path).sink.open()).rejects.toMatchObject({ code: 'folder_unwritable', detail });
  });

  it('can be opened again after it could not be', async () => {
    const path = join(tempFolder(), 'archive');
    writeFileSync(path, 'a file');
    const { sink } = filesSink(path);
    await expect(sink.open()).rejects.toMatchObject({ code: 'folder_unwritable' });
    rmSync(path);
    await sink.open();
    await sink.send(deliver(1, 1), signal);
    await sink.close(signal);
    expect(await ids(path)).toEqual(['msg_1']);
  });
});
