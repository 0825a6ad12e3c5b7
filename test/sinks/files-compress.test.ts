import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import { COMPRESSIONS } from '../../src/core/compression.ts';
import { compress, writeFinished } from '../../src/sinks/files/compress.ts';
import { Part } from '../../src/sinks/files/part.ts';
import { deliver, filesSink, ids, signal, tempFolder } from './support.ts';

/** Above what a thread is started for. */
const BYTES = 5 * 2 ** 20;

function largePart(): Part {
  const openFolder = tempFolder();
  const part = new Part({ openFolder, folder: '', stem: 'large' }, { length: BYTES });
  // What lies beyond its length was never acknowledged.
  writeFileSync(part.path, Buffer.alloc(BYTES + 100, '{"id":"made up"}\n'));
  return part;
}

const filesBeside = ({ name }: Part): string[] => readdirSync(name.openFolder).sort();

it.each(COMPRESSIONS)('a thread writes the same file as this one, %s', async (compression) => {
  const part = largePart();
  const written = await compress(part, compression, signal);
  if (compression === 'gzip')
    expect(execFileSync('gzip', ['-dc', '-S', '.tmp', part.temporaryPath], { maxBuffer: 1e8 })).toHaveLength(
      BYTES,
    );
  rmSync(part.temporaryPath);
  const { path, length, temporaryPath } = part;
  expect(await writeFinished({ path, length, temporaryPath, compression }, signal)).toEqual(written);
});

it('an error in the thread keeps its code, and leaves no file', async () => {
  const part = largePart();
  writeFileSync(part.path, 'cut by somebody');
  await expect(compress(part, 'gzip', signal)).rejects.toThrow('has shrunk from 5242880 to 15 bytes');
  rmSync(part.path);
  await expect(compress(part, 'gzip', signal)).rejects.toMatchObject({ code: 'ENOENT' });
  expect(filesBeside(part)).toEqual([]);
});

it('a thread that is stopped leaves the part as it was', async () => {
  const part = largePart();
  const stop = new AbortController();
  const work = compress(part, 'gzip', stop.signal);
  stop.abort();
  await expect(work).rejects.toThrow('aborted');
  await expect(compress(part, 'gzip', stop.signal)).rejects.toThrow('aborted');
  expect(filesBeside(part)).toEqual(['large.part']);
});

it('a large part becomes a file like any other', async () => {
  const path = tempFolder();
  const { sink } = filesSink(path);
  await sink.open();
  const body = Buffer.from(JSON.stringify({ event: 'x'.repeat(20_000) }));
  for (let first = 1; first <= 300; first += 100) await sink.send(deliver(first, 100, { body }), signal);
  await sink.close(signal);
  expect(await ids(path)).toHaveLength(300);
  expect(await verifyArchive(path)).toMatchObject({ files: 1, records: 300, differences: [] });
});
