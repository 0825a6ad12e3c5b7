import {
  appendFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { AppendFile, FileGone } from '../../src/lib/append-file.ts';
import { temporaryFolder } from '../support/folders.ts';

afterEach(() => vi.restoreAllMocks());

const newPath = async (): Promise<string> => join(await temporaryFolder(), 'made-up.log');
const line = (text: string): Buffer => Buffer.from(`${text}\n`);
const EIO = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
const ENOSPC = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });

async function created(path: string): Promise<AppendFile> {
  const file = new AppendFile(path, 0);
  await file.create();
  return file;
}

/** Of every file handle there is: what the system calls of the next write do is decided here. */
async function handles(): Promise<FileHandle> {
  const handle = await open(import.meta.filename);
  await handle.close();
  return Object.getPrototypeOf(handle) as FileHandle;
}

type Write = (
  this: FileHandle,
  data: Buffer,
  from: number,
  length: number,
  at: number,
) => Promise<{ bytesWritten: number }>;

/** As the system's own: part of the bytes, and then as many as are asked for, or an error. */
async function writeInPart(bytes: number, then: 'continues' | Error): Promise<void> {
  const prototype = (await handles()) as unknown as { write: Write };
  const plain = prototype.write;
  const spy = vi.spyOn(prototype, 'write').mockImplementationOnce(function (
    this: FileHandle,
    data,
    from,
    length,
    at,
  ) {
    return plain.call(this, data, from, Math.min(bytes, length), at);
  });
  if (then !== 'continues') spy.mockRejectedValueOnce(then);
}

test('a file that is closed takes nothing, and one that is there is not created', async () => {
  const path = await newPath();
  await (await created(path)).close();
  const file = new AppendFile(path, 0);
  await expect(file.create()).rejects.toThrow('EEXIST');
  await file.close();
  await expect(file.append(line('four'))).rejects.toThrow('is closed');
});

test('without syncs all is made durable when it is closed, also what was written on an earlier handle', async () => {
  const path = await newPath();
  const file = new AppendFile(path, 0, false);
  await file.create();
  const sync = vi.spyOn(await handles(), 'datasync');
  await file.append(line('one'));
  await file.release();
  expect([sync.mock.calls.length, file.length]).toEqual([0, 4]);
  await file.close();
  expect([sync.mock.calls.length, readFileSync(path, 'utf8')]).toEqual([1, 'one\n']);
});

test('without syncs a close that cannot make it durable says so, and closes', async () => {
  for (const fail of ['sync', 'gone']) {
    const path = await newPath();
    const file = new AppendFile(path, 0, false);
    await file.create();
    await file.append(line('one'));
    await file.release();
    if (fail === 'gone') rmSync(path);
    else vi.spyOn(await handles(), 'datasync').mockRejectedValueOnce(EIO);
    await expect(file.close()).rejects.toThrow(fail === 'gone' ? 'was removed' : 'EIO');
    expect(file.mode).toBe('closed');
  }
});

test('appends that wait at the same time share a sync', async () => {
  const path = await newPath();
  const file = await created(path);
  const sync = vi.spyOn(await handles(), 'datasync');
  await Promise.all(Array.from({ length: 50 }, (_, n) => file.append(line(`made-up ${n}`))));
  expect(sync.mock.calls.length).toBeLessThanOrEqual(2);
  expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(51);
  await file.close();
});

test('lines that are found are made durable: the process that wrote them may have been killed before its sync', async () => {
  for (const found of ['one\ntwo\n', 'one\ntorn']) {
    const path = await newPath();
    writeFileSync(path, found);
    const sync = vi.spyOn(await handles(), 'datasync');
    const { file } = await AppendFile.openLines(path);
    expect(sync).toHaveBeenCalledTimes(1);
    sync.mockRestore();
    await file.close();
  }
  const path = await newPath();
  writeFileSync(path, 'one\n');
  vi.spyOn(await handles(), 'datasync').mockRejectedValueOnce(EIO);
  await expect(AppendFile.openLines(path)).rejects.toThrow('EIO');
});

test.each<[before: string, kept: string]>([
  ['', ''],
  ['torn', ''],
  ['one\n', 'one\n'],
  ['one\ntwo\ntor', 'one\ntwo\n'],
  [`one\n${'x'.repeat(300_000)}`, 'one\n'],
  [`${'y'.repeat(300_000)}\nz`, `${'y'.repeat(300_000)}\n`],
])('an incomplete last line is cut off when a file of lines is opened (%#)', async (before, kept) => {
  const path = await newPath();
  if (before !== '') writeFileSync(path, before);
  const { file, cut } = await AppendFile.openLines(path, 0o600);
  expect([file.length, cut]).toEqual([kept.length, before.length - kept.length]);
  expect(readFileSync(path, 'utf8')).toBe(kept);
  expect((await file.lineBefore(file.length)).toString()).toBe(kept.split('\n').at(-2) ?? '');
  if (before === '') expect(statSync(path).mode & 0o777).toBe(0o600);
  await file.close();
});

test('a line of which a sector never came to the disk is cut off, with what follows; one that is damaged stays', async () => {
  const whole = `${'w'.repeat(699)}\n`;
  const last = `${'l'.repeat(999)}\n`;
  const lines = Buffer.from(whole + last + last);
  const holes: [from: number, to: number, kept: number][] = [
    [700, 1024, 700],
    [1024, 1536, 700],
    [1700, 2048, 1700],
    [2048, 2560, 1700],
    [512, 1024, 0],
    [1100, 1101, 2700],
    [1100, 1536, 2700],
  ];
  for (const [from, to, kept] of holes) {
    const path = await newPath();
    writeFileSync(path, Buffer.from(lines).fill(0, from, to));
    const { file, cut } = await AppendFile.openLines(path);
    expect([from, file.length, cut]).toEqual([from, kept, lines.length - kept]);
    await file.close();
  }
});

test('after a failed sync nothing of that append counts, and the next one is on a new handle', async () => {
  const path = await newPath();
  const file = await created(path);
  await file.append(line('one'));
  const sync = vi.spyOn(await handles(), 'datasync').mockRejectedValueOnce(EIO);
  const both = await Promise.allSettled([file.append(line('lost')), file.append(line('lost too'))]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect([file.mode, file.length]).toEqual(['suspect', 4]);
  const [failed] = sync.mock.contexts;
  await file.append(line('two'));
  expect(sync.mock.contexts.at(-1)).not.toBe(failed);
  expect([file.mode, readFileSync(path, 'utf8')]).toEqual(['open', 'one\ntwo\n']);
  await file.close();
});

test('trim cuts off what a failed write has left, also once the file is closed, and asks again when it could not', async () => {
  const path = await newPath();
  const file = await created(path);
  await file.append(line('whole'));
  const prototype = await handles();
  vi.spyOn(prototype, 'datasync').mockRejectedValueOnce(EIO);
  vi.spyOn(prototype, 'truncate').mockRejectedValueOnce(EIO);
  await expect(file.append(line('left'))).rejects.toThrow('EIO');
  await file.close();
  vi.spyOn(prototype, 'truncate').mockRejectedValueOnce(EIO);
  await expect(file.trim()).rejects.toThrow('EIO');
  expect(readFileSync(path, 'utf8')).toBe('whole\nleft\n');
  vi.restoreAllMocks();
  const sync = vi.spyOn(prototype, 'datasync');
  await file.trim();
  expect([readFileSync(path, 'utf8'), sync.mock.calls.length]).toEqual(['whole\n', 1]);
  await file.trim();
  expect(sync).toHaveBeenCalledOnce();
});

test('pieces are written in their order, however much of them the system takes at a time', async () => {
  const prototype = (await handles()) as unknown as {
    writev: (pieces: readonly Buffer[], at: number) => Promise<{ bytesWritten: number }>;
  };
  const plain = prototype.writev;
  const sizes = fc.array(fc.constantFrom(0, 1, 2, 7, 5000), { maxLength: 8 });
  const groups = fc.array(sizes, { minLength: 1, maxLength: 4 });
  const takes = fc.array(fc.integer({ min: 1, max: 12_000 }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(groups, takes, async (given, limits) => {
      const left = [...limits];
      vi.spyOn(prototype, 'writev').mockImplementation(function (this: unknown, pieces, at) {
        const bytes = Buffer.concat(pieces).subarray(0, left.shift());
        return plain.call(this as never, [bytes], at);
      });
      const path = await newPath();
      const file = await created(path);
      let next = 0;
      const all = given.map((each) => each.map((size) => Buffer.alloc(size, (next += 1))));
      await Promise.all(all.map((pieces) => file.append(...pieces)));
      expect(readFileSync(path).equals(Buffer.concat(all.flat()))).toBe(true);
      expect(file.length).toBe(Buffer.concat(all.flat()).length);
      await file.close();
    }),
    { numRuns: 50 },
  );
});

test('bytes that are there can be written over, and a failure in between costs none of the others', async () => {
  const path = await newPath();
  const file = await created(path);
  await file.append(line('one two three'));
  await file.overwrite(Buffer.from('TWO'), 4);
  vi.spyOn(await handles(), 'datasync').mockRejectedValueOnce(EIO);
  await expect(file.overwrite(Buffer.from('ONE'), 0)).rejects.toThrow('EIO');
  await file.overwrite(Buffer.from('ONE'), 0);
  expect(readFileSync(path, 'utf8')).toBe('ONE TWO three\n');
  await file.close();
});

test.each(['removed', 'replaced', 'cut'])(
  'a file that somebody has %s takes nothing any more',
  async (how) => {
    const path = await newPath();
    for (const released of [false, true]) {
      rmSync(path, { force: true });
      const file = await created(path);
      await file.append(line('one'));
      if (released) await file.release();
      if (how === 'replaced') {
        writeFileSync(`${path}.other`, 'one\nanother\n');
        renameSync(`${path}.other`, path);
      } else if (how === 'cut') truncateSync(path, 2);
      else rmSync(path);
      expect(await file.isThere()).toBe(false);
      const before = how === 'removed' ? null : readFileSync(path, 'utf8');
      await expect(file.append(line('two'))).rejects.toThrow(FileGone);
      if (before !== null) expect(readFileSync(path, 'utf8')).toBe(before);
      await file.close();
    }
  },
);

test('no symbolic link is followed', async () => {
  const path = await newPath();
  writeFileSync(`${path}.secret`, 'keep');
  symlinkSync(`${path}.secret`, path);
  await expect(AppendFile.openLines(path)).rejects.toThrow('symbolic link');
  await expect(new AppendFile(path, 0).append(line('one'))).rejects.toThrow('symbolic link');
  expect(readFileSync(`${path}.secret`, 'utf8')).toBe('keep');
});

/** What can happen to a file, one after the other. */
const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('append' as const),
      sizes: fc.array(fc.nat(40), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ kind: fc.constant('sync fails' as const) }),
    fc.record({ kind: fc.constant('disk full' as const), after: fc.nat(30) }),
    fc.record({ kind: fc.constant('short write' as const), after: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ kind: fc.constant('release' as const) }),
    fc.record({
      kind: fc.constant('crash' as const),
      torn: fc.string({ unit: 'grapheme-ascii', maxLength: 20 }),
    }),
  ),
  { maxLength: 25 },
);

test('in random histories the file is what was confirmed, line by line, after each restart', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const path = await newPath();
      let { file } = await AppendFile.openLines(path);
      let confirmed = '';
      let n = 0;
      for (const step of history) {
        if (step.kind === 'sync fails') vi.spyOn(await handles(), 'datasync').mockRejectedValueOnce(EIO);
        else if (step.kind === 'disk full') await writeInPart(step.after, ENOSPC);
        else if (step.kind === 'short write') await writeInPart(step.after, 'continues');
        else if (step.kind === 'release') await file.release();
        else if (step.kind === 'append') {
          const lines = step.sizes.map((size) => `${(n += 1)} ${'x'.repeat(size)}\n`);
          const results = await Promise.allSettled(lines.map((text) => file.append(Buffer.from(text))));
          for (const [index, { status }] of results.entries())
            if (status === 'fulfilled') confirmed += lines[index] ?? '';
          expect(readFileSync(path, 'utf8')).toBe(confirmed);
          vi.restoreAllMocks();
        } else {
          // After a crash the file is not closed; an interrupted write leaves no line break.
          vi.restoreAllMocks();
          await file.release();
          appendFileSync(path, step.torn);
          const opened = await AppendFile.openLines(path);
          expect([opened.cut, opened.file.length]).toEqual([step.torn.length, confirmed.length]);
          file = opened.file;
        }
      }
      vi.restoreAllMocks();
      await file.close();
      expect(readFileSync(path, 'utf8')).toBe(confirmed);
    }),
    { numRuns: 60 },
  );
});

test('a file whose folder cannot be synced is not left behind, nor its handle', async () => {
  const path = await newPath();
  vi.spyOn(await handles(), 'sync').mockRejectedValueOnce(EIO);
  const file = new AppendFile(path, 0);
  await expect(file.create()).rejects.toThrow('EIO');
  expect(existsSync(path)).toBe(false);
  expect(file.mode).toBe('suspect');
  await file.create();
  await file.append(line('one'));
  expect(readFileSync(path, 'utf8')).toBe('one\n');
  await file.close();
});
