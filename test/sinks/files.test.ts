import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { open as openFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import { Part } from '../../src/sinks/files/part.ts';
import type { FinishStep } from '../../src/sinks/files/target.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { deliver, filesSink, ids, signal, tempFolder } from './support.ts';
import { openFiles } from '../support/open-files.ts';

function five<T>(value: T): T[] {
  return Array.from({ length: 5 }, () => value);
}

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

function endOnceListed(step: FinishStep): void {
  if (step === 'listed') throw new Error('made-up end of the process');
}

describe('files sink', () => {
  it('keeps a file out of sight of *.ndjson* until it is complete', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path);
    await sink.open();
    await sink.send(deliver(1, 5), signal);
    const open = await filesIn(path);
    expect(open).toEqual([
      '_manifest.jsonl',
      expect.stringMatching(/^_open\/[0-9a-f]{12}\/dt=2026-11-21\/20261121T031502124Z-[0-9a-f]{12}\.part$/),
      expect.stringMatching(/^_open\/[0-9a-f]{12}\/lock-owner$/),
    ]);
    await sink.close(signal);
    expect(await filesIn(path)).toEqual([
      '_manifest.jsonl',
      expect.stringMatching(/^dt=2026-11-21\/20261121T031502124Z-[0-9a-f]{12}\.ndjson\.gz$/),
    ]);
    expect((await verifyArchive(path)).differences).toEqual([]);
  });

  it('starts a new file before the batch that comes after the size limit', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path, { rotate: { bytes: 1024 } });
    await sink.open();
    for (let i = 0; i < 4; i += 1) await sink.send(deliver(i * 5 + 1, 5), signal);
    await sink.close(signal);
    const report = await verifyArchive(path);
    expect(report).toMatchObject({ files: 4, records: 20, differences: [] });
  });

  it('fault 17: finishes a file by age on the monotonic clock, whatever the wall clock does', async () => {
    const path = tempFolder();
    const { sink, context } = filesSink(path, { rotate: { every: '1h' } });
    await sink.open();
    await sink.send(deliver(1, 5), signal);
    context.clock.jump(7_200_000);
    context.clock.advance(3_599_999);
    expect((await filesIn(path)).filter((file) => file.includes('.ndjson'))).toEqual([]);
    context.clock.jump(-7_200_000);
    context.clock.advance(1);
    await until(async () => (await verifyArchive(path)).records === 5);
    await sink.close(signal);
    expect(context.clock.pending).toBe(0);
    expect((await verifyArchive(path)).differences).toEqual([]);
  });

  it('closes every open file when told to, and names what it could not close', async () => {
    const path = tempFolder();
    let full = true;
    const hooks = {
      onStep: (step: string) => {
        if (full && step === 'written') throw new Error('made-up full disk');
      },
    };
    const { sink } = filesSink(path, { partitionBy: ['type'] }, hooks);
    await expect(sink.flush()).rejects.toThrow('is not open');
    await sink.open();
    expect(await sink.flush()).toEqual({ files: [], failed: [] });
    await sink.send(deliver(1, 3), signal);
    const failed = await sink.flush();
    expect(failed).toEqual({ files: [], failed: [expect.stringContaining('made-up full disk')] });
    full = false;
    await sink.send(deliver(4, 2), signal);
    const { files } = await sink.flush();
    expect(files.map(({ records }) => records).toSorted((a, b) => a - b)).toEqual([2, 3]);
    expect(await verifyArchive(path)).toMatchObject({ files: 2, records: 5, differences: [] });
    await sink.close(signal);
  });

  it('puts events into Hive folders, destinations first', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path, { partitionBy: ['date', 'hour', 'type', 'team'], compress: 'none' });
    await sink.open();
    await sink.send([...deliver(1, 1), ...deliver(2, 1, { team: null }, 'meals')], signal);
    await sink.close(signal);
    const files = (await filesIn(path)).map((file) => file.replace(/\/[^/]*$/, ''));
    expect(files).toEqual([
      '_manifest.jsonl',
      'dt=2026-11-21/hour=03/type=daily.data.meal.created/team=team-1',
      'meals/dt=2026-11-21/hour=03/type=daily.data.meal.created/team=__HIVE_DEFAULT_PARTITION__',
    ]);
  });

  it('keeps few files open, whatever the number of partitions', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path, { partitionBy: ['team'] }, { openFiles: 3 });
    await sink.open();
    const batch = Array.from({ length: 40 }, (_, i) => ({
      event: contractEvent(i + 1, { team: `team-${i % 20}` }),
      destination: null,
    }));
    for (let i = 0; i < 40; i += 8) await sink.send(batch.slice(i, i + 8), signal);
    await until(() => openFiles().filter((file) => file.includes('.part')).length <= 3);
    await sink.close(signal);
    expect(await verifyArchive(path)).toMatchObject({ files: 20, records: 40, differences: [] });
  });

  it('leaves unfinished files for the next start when close may not take its time', async () => {
    const path = tempFolder();
    const first = filesSink(path);
    await first.sink.open();
    await first.sink.send(deliver(1, 5), signal);
    await first.sink.close(AbortSignal.abort());
    expect((await verifyArchive(path)).notes).toHaveLength(1);
    const second = filesSink(path);
    await second.sink.open();
    await second.sink.close(signal);
    expect(await verifyArchive(path)).toMatchObject({ files: 1, records: 5, differences: [], notes: [] });
  });

  it('lets two writers share an archive', async () => {
    const path = tempFolder();
    const one = filesSink(path).sink;
    const two = filesSink(path).sink;
    await one.open();
    await one.send(deliver(1, 5), signal);
    await two.open();
    await two.send(deliver(6, 5), signal);
    await Promise.all([one.close(signal), two.close(signal)]);
    expect(await verifyArchive(path)).toMatchObject({ files: 2, records: 10, differences: [] });
  });

  it('fault 7: does not claim what a failed sync may have lost, and writes it again on a new handle', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path);
    await sink.open();
    await sink.send(deliver(1, 5), signal);
    const probe = await openFile(join(path, '_manifest.jsonl'));
    const prototype: typeof probe = Object.getPrototypeOf(probe);
    await probe.close();
    const eio = Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });
    const datasync = vi.spyOn(prototype, 'datasync').mockRejectedValueOnce(eio);
    const failed = await sink.send(deliver(6, 5), signal);
    expect(failed).toEqual(five({ status: 'retry', reason: eio.message, sink: true }));
    expect(await sink.send(deliver(6, 5), signal)).toEqual(five({ status: 'delivered' }));
    expect(new Set(datasync.mock.contexts).size).toBe(2);
    datasync.mockRestore();
    await sink.close(signal);
    expect(await ids(path)).toHaveLength(10);
    expect((await verifyArchive(path)).differences).toEqual([]);
  });

  it('fault 7: takes nothing of a failed write for delivered when its part outlives the finished file', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path, {}, { onStep: endOnceListed });
    await sink.open();
    await sink.send(deliver(1, 5), signal);
    const probe = await openFile(join(path, '_manifest.jsonl'));
    const prototype: typeof probe = Object.getPrototypeOf(probe);
    await probe.close();
    // The records are written, but neither synced nor cut off again.
    const eio = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
    vi.spyOn(prototype, 'datasync').mockRejectedValueOnce(eio);
    const truncate = vi.spyOn(prototype, 'truncate').mockRejectedValueOnce(eio);
    expect(await sink.send(deliver(6, 5), signal)).toEqual(
      five({ status: 'retry', reason: eio.message, sink: true }),
    );
    expect(truncate).toHaveBeenCalledOnce();
    vi.restoreAllMocks();
    await sink.close(signal);
    expect((await filesIn(path)).filter((file) => file.endsWith('.part'))).toHaveLength(1);
    const { sink: next } = filesSink(path);
    await next.open();
    expect(await next.send(deliver(6, 5), signal)).toEqual(five({ status: 'delivered' }));
    await next.close(signal);
    expect(await ids(path)).toHaveLength(10);
    expect((await verifyArchive(path)).differences).toEqual([]);
  });

  it('fault 28: what it logs about hostile names is one line, and holds no body', async () => {
    const path = tempFolder();
    const { sink, context } = filesSink(path, { partitionBy: ['team'], rotate: { bytes: 1024 } });
    await sink.open();
    writeFileSync(join(path, 'a%0D%0A%1B%5B31m'), 'in the way');
    await sink.send(deliver(1, 1, { body: Buffer.from('{"health":1}') }, 'a\r\n\u001b[31m'), signal);
    await sink.close(signal);
    const logged = context.lines.map((line) => JSON.stringify(line));
    expect(logged.some((line) => line.includes('a%0D%0A%1B%5B31m'))).toBe(true);
    for (const line of logged) expect(line).not.toMatch(/\\[rn]|\\u001b|health/);
  });

  it('continues when somebody has deleted an unfinished file, and says so', async () => {
    const path = tempFolder();
    const { sink, context } = filesSink(path, { partitionBy: ['team'] }, { openFiles: 1 });
    await sink.open();
    await sink.send(deliver(1, 1, { team: 'a' }), signal);
    await sink.send(deliver(2, 1, { team: 'b' }), signal);
    execFileSync('find', [path, '-name', '*.part', '-delete']);
    expect(await sink.send(deliver(3, 1, { team: 'a' }), signal)).toEqual([{ status: 'delivered' }]);
    await sink.close(signal);
    const errors = context.lines.filter(({ level }) => level === 'error').map(({ message }) => message);
    expect(errors).toEqual(Array.from({ length: 2 }, () => 'an unfinished archive file disappeared'));
    expect(await ids(path)).toEqual(['msg_3']);
  });

  it('keeps the part and tries again when finishing fails', async () => {
    const path = tempFolder();
    const { sink, context } = filesSink(path, { rotate: { every: '1h' } });
    await sink.open();
    await sink.send(deliver(1, 5), signal);
    writeFileSync(join(path, 'dt=2026-11-21'), 'in the way');
    context.clock.advance(3_600_000);
    await until(() => sink.troubles().length > 0);
    expect(context.lines.some(({ level }) => level === 'error')).toBe(true);
    const since = context.clock.now();
    const failing = { code: 'unfinished', since, detail: expect.stringContaining('5 records') };
    expect(sink.troubles()).toEqual([failing]);
    context.clock.advance(30_000);
    await until(() => context.lines.filter(({ level }) => level === 'error').length === 2);
    // Since when it first failed, however often it is tried.
    expect(sink.troubles()).toEqual([failing]);
    execFileSync('rm', [join(path, 'dt=2026-11-21')]);
    context.clock.advance(30_000);
    await until(async () => (await verifyArchive(path)).records === 5);
    await until(() => sink.troubles().length === 0);
    await sink.close(signal);
    expect((await verifyArchive(path)).differences).toEqual([]);
  });

  it('lists no empty file of 1970 after an append that failed', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path, { rotate: { every: '1h' } });
    await sink.open();
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const append = vi.spyOn(Part.prototype, 'append').mockRejectedValueOnce(full);
    expect(await sink.send(deliver(1, 5), signal)).toContainEqual(
      expect.objectContaining({ status: 'retry' }),
    );
    append.mockRestore();
    await sink.close(signal);
    expect(await verifyArchive(path)).toMatchObject({ files: 0, records: 0, differences: [] });
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
    expect(context.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields['path'])).toEqual(
      expect.arrayContaining([link, fifo]),
    );
    await sink.send(deliver(1, 1, {}, 'meals'), signal);
    await sink.close(signal);
    expect(await readdir(outside)).toEqual(['secret']);
    expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('keep');
    const report = await verifyArchive(path);
    expect(report.differences.map(({ code, file }) => [code, file])).toEqual(
      expect.arrayContaining([['file_not_followed', 'meals']]),
    );
    expect(report.notes).toHaveLength(1);
  });

  it('fault 30: refuses a manifest that is a link or a FIFO, by name', async () => {
    for (const make of [
      (file: string) => symlinkSync('/dev/null', file),
      (file: string) => execFileSync('mkfifo', [file]),
    ]) {
      const path = tempFolder();
      make(join(path, '_manifest.jsonl'));
      await expect(filesSink(path).sink.open()).rejects.toMatchObject({
        code: 'folder_unwritable',
        detail: expect.stringContaining('_manifest.jsonl'),
      });
    }
  });

  it('can be opened again after it could not be', async () => {
    const path = tempFolder();
    writeFileSync(join(path, 'archive'), 'a file');
    const { sink } = filesSink(join(path, 'archive'));
    await expect(sink.open()).rejects.toMatchObject({ code: 'folder_unwritable' });
    execFileSync('rm', [join(path, 'archive')]);
    await sink.open();
    await sink.send(deliver(1, 1), signal);
    await sink.close(signal);
    expect(await ids(join(path, 'archive'))).toEqual(['msg_1']);
  });
});
