import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { listArchive } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { deliver, filesSink, ids, items, signal, tempFolder } from '../sinks/support.ts';

/** Three finished files of five records, in order of time. */
async function makeArchive(options: object = {}): Promise<{ path: string; files: readonly string[] }> {
  const path = tempFolder();
  const { sink } = filesSink(path, { rotate: { bytes: 1024 }, ...options });
  await sink.open();
  for (const from of [1, 6, 11]) await sink.send(deliver(from, 5), signal);
  await sink.close(signal);
  return { path, files: (await listArchive(path)).files };
}

async function codes(path: string): Promise<string[]> {
  const { differences } = await verifyArchive(path);
  return differences.map(({ code, file, line }) => `${code} ${file}${line === null ? '' : `:${line}`}`);
}

describe('verifyArchive', () => {
  let path = '';
  let files: readonly string[] = [];
  let file = '';
  let manifest = '';

  beforeEach(async () => {
    ({ path, files } = await makeArchive());
    file = files[1]!;
    manifest = join(path, '_manifest.jsonl');
  });

  it('finds nothing wrong with what the sink wrote', async () => {
    const report = await verifyArchive(path);
    expect(report).toMatchObject({ files: 3, records: 15, differences: [], notes: [] });
    expect(report.signatures).toEqual({ verified: 0, unmatched: 0, invalid: 0, unsigned: 0 });
  });

  it('fault 4: a flipped bit is reported by name, and the other files are still read', async () => {
    const bytes = readFileSync(join(path, file));
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 4, bytes.length >> 1);
    writeFileSync(join(path, file), bytes);
    const found = await codes(path);
    expect(found).toContain(`file_changed ${file}`);
    expect(found.every((text) => text.includes(file))).toBe(true);
    const kinds = (await items(path)).filter((item) => item.file !== file).map(({ kind }) => kind);
    expect(kinds).toEqual(Array(10).fill('record'));
  });

  it('names what is missing, extra, cut short and not followed', async () => {
    const [first = '', second = '', third = ''] = files;
    renameSync(join(path, first), join(path, 'moved.ndjson.gz'));
    const bytes = readFileSync(join(path, second));
    writeFileSync(join(path, second), bytes.subarray(0, -9));
    rmSync(join(path, third));
    symlinkSync('/etc/passwd', join(path, third));
    expect((await codes(path)).sort()).toEqual(
      [
        `file_missing ${first}`,
        'file_extra moved.ndjson.gz',
        `file_truncated ${second}`,
        `file_unreadable ${second}`,
        `file_not_followed ${third}`,
      ].sort(),
    );
  });

  it('reads a changed file for what it says, not only for its hash', async () => {
    const text = gunzipSync(readFileSync(join(path, file))).toString();
    const lines = text.split('\n');
    writeFileSync(join(path, file), gzipSync([lines[0], 'not a record', ...lines.slice(2)].join('\n')));
    const { differences } = await verifyArchive(path);
    expect(differences).toContainEqual(expect.objectContaining({ code: 'record_invalid', file, line: 2 }));
    expect(differences.map(({ detail }) => detail)).toEqual(
      expect.arrayContaining([
        'records: 4 instead of 5',
        'records of type "daily.data.meal.created": 4 instead of 5',
      ]),
    );
  });

  it('follows the chain of the manifest: a changed, a dropped and a torn line', async () => {
    const lines = readFileSync(manifest, 'utf8').split('\n');
    writeFileSync(manifest, lines.join('\n').replace('"records":5', '"records":6'));
    expect(await codes(path)).toEqual([
      'chain_broken _manifest.jsonl:2',
      expect.stringMatching(/^counts_differ /),
    ]);
    writeFileSync(manifest, [lines[0], ...lines.slice(2)].join('\n'));
    expect(await codes(path)).toEqual([
      'chain_broken _manifest.jsonl:2',
      expect.stringMatching(/^file_extra /),
    ]);
    writeFileSync(manifest, `${lines.join('\n')}{"file":`);
    expect(await codes(path)).toEqual(['manifest_line_invalid _manifest.jsonl:4']);
    rmSync(manifest);
    expect((await codes(path))[0]).toBe('manifest_missing _manifest.jsonl');
  });

  it('fault 27: takes no manifest line that leads out of the archive', async () => {
    const [line = ''] = readFileSync(manifest, 'utf8').split('\n');
    for (const name of ['../x.ndjson', '/etc/passwd', 'a//b', 'a/./b', 'a\\b']) {
      writeFileSync(manifest, `${JSON.stringify({ ...JSON.parse(line), file: name })}\n`);
      expect((await codes(path))[0]).toBe('manifest_line_invalid _manifest.jsonl:1');
    }
  });

  it('counts the faults of a ruined file instead of naming thousands', async () => {
    writeFileSync(join(path, 'ruined.ndjson'), 'x\n'.repeat(5000));
    const { differences } = await verifyArchive(path);
    expect(differences.length).toBeLessThan(30);
    expect(differences.at(-1)).toMatchObject({ file: 'ruined.ndjson', detail: 'and 4981 more in this file' });
  });

  it('says what is no archive', async () => {
    const unreadable = { code: 'archive_unreadable' };
    await expect(verifyArchive(join(path, 'gone'))).rejects.toMatchObject(unreadable);
    await expect(verifyArchive(join(path, file))).rejects.toMatchObject(unreadable);
    mkdirSync(join(path, 'empty'));
    await expect(verifyArchive(join(path, 'empty'))).rejects.toMatchObject(unreadable);
  });

  it('stops when told to', async () => {
    await expect(verifyArchive(path, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/i);
  });
});

describe('readArchive', () => {
  it.each(['none', 'gzip', 'zstd'])('reads %s, a single file too', async (compress) => {
    const { path, files } = await makeArchive({ compress });
    expect(await ids(path)).toHaveLength(15);
    expect(await ids(join(path, files[0]!))).toHaveLength(5);
  });

  it('reads files put together from several gzip members', async () => {
    const { path, files } = await makeArchive();
    const whole = Buffer.concat(files.map((file) => readFileSync(join(path, file))));
    writeFileSync(join(path, 'all.ndjson.gz'), whole);
    expect(await ids(join(path, 'all.ndjson.gz'))).toHaveLength(15);
  });

  it('reads every zstd frame of a file, and names what follows and is none', async () => {
    const { path, files } = await makeArchive({ compress: 'zstd' });
    const first = readFileSync(join(path, files[0]!));
    expect(zstdDecompressSync(first).length).toBeGreaterThan(0);
    const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2]);
    const two = join(path, 'two.ndjson.zst');
    writeFileSync(two, Buffer.concat([skippable, first, skippable, first]));
    expect((await items(two)).map(({ kind }) => kind)).toEqual(Array.from({ length: 10 }, () => 'record'));
    writeFileSync(two, Buffer.concat([first, zstdCompressSync('x\n'), Buffer.from('none')]));
    const found = await items(two);
    expect(found.slice(5)).toMatchObject([
      { kind: 'problem', line: 6 },
      { kind: 'problem', line: null },
    ]);
  });

  it('reads unfinished files when asked, without their torn end', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path);
    await sink.open();
    await sink.send(deliver(1, 5), signal);
    const { parts } = await listArchive(path);
    appendFileSync(join(path, parts[0]!), '{"id":"half');
    expect(await ids(path)).toEqual([]);
    expect(await ids(path, true)).toHaveLength(5);
    await sink.close(signal);
  });

  it('reports a line that has no end', async () => {
    const { path, files } = await makeArchive({ compress: 'none' });
    const whole = readFileSync(join(path, files[0]!));
    writeFileSync(join(path, files[0]!), whole.subarray(0, -1));
    expect((await items(path)).filter(({ kind }) => kind === 'problem')).toEqual([
      { kind: 'problem', file: files[0], line: 5, reason: 'the line has no end' },
    ]);
  });
});
