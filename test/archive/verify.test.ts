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
import { gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { listArchive } from '../../src/archive/places.ts';
import { ManifestWriter } from '../../src/archive/manifest-writer.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { SILENT } from '../../src/core/sink.ts';
import { hashLine } from '../../src/lib/chained-log.ts';
import { deliver, filesSink, ids, items, signal, tempFolder } from '../sinks/support.ts';
import { details, differences, makeArchive, type MadeArchive } from './support.ts';

describe('verifyArchive', () => {
  let made: MadeArchive;
  let path = '';
  let files: [string, string, string] = ['', '', ''];

  beforeEach(async () => {
    made = await makeArchive();
    path = made.path;
    files = [...made.files] as typeof files;
  });

  it('finds nothing wrong with what the sink wrote', async () => {
    expect(await verifyArchive(path)).toMatchObject({
      files: 3,
      records: 15,
      differences: [],
      notes: [],
      signatures: { verified: 0, unmatched: 0, invalid: 0, unsigned: 0 },
    });
  });

  it('fault 4: a flipped bit is reported by name, and the other files are still read', async () => {
    const [, file] = files;
    const bytes = readFileSync(join(path, file));
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 4, bytes.length >> 1);
    writeFileSync(join(path, file), bytes);
    const found = await differences(path);
    expect(found).toContain(`file_changed ${file}`);
    expect(found.every((text) => text.includes(file))).toBe(true);
    const kinds = (await items(path)).filter((item) => item.file !== file).map(({ kind }) => kind);
    expect(kinds).toEqual(Array(10).fill('record'));
  });

  it('names what is missing, under another name, cut short and not followed', async () => {
    const [first, second, third] = files;
    renameSync(join(path, first), join(path, 'moved.ndjson.gz'));
    const bytes = readFileSync(join(path, second));
    writeFileSync(join(path, second), bytes.subarray(0, -9));
    rmSync(join(path, third));
    symlinkSync('/etc/passwd', join(path, third));
    expect((await differences(path)).toSorted()).toEqual(
      [
        `file_missing ${first}`,
        'file_extra moved.ndjson.gz',
        `file_truncated ${second}`,
        `file_unreadable ${second}`,
        `file_not_followed ${third}`,
      ].toSorted(),
    );
    expect(await details(path)).toContain('its bytes are in moved.ndjson.gz');
  });

  it('names two swapped files, and where their bytes belong', async () => {
    const [a, b] = files;
    renameSync(join(path, a), join(path, 'aside'));
    renameSync(join(path, b), join(path, a));
    renameSync(join(path, 'aside'), join(path, b));
    const report = await verifyArchive(path);
    const named = report.differences.flatMap(({ file, detail }) => {
      const [, other] = detail.split('it holds what is listed as ');
      return other === undefined ? [] : [`${file} ${other}`];
    });
    expect(named.toSorted()).toEqual([`${a} ${b}`, `${b} ${a}`].toSorted());
    expect(report.records).toBe(15);
  });

  it('reads a changed file for what it says: a line that is none, one removed, one changed, others reordered', async () => {
    const plain = await makeArchive({ compress: 'none' }, 4);
    const [a = '', b = '', c = '', d = ''] = plain.files;
    const rewrite = (file: string, change: (lines: string[]) => string[]): void => {
      const lines = readFileSync(join(plain.path, file), 'utf8').trimEnd().split('\n');
      writeFileSync(join(plain.path, file), `${change(lines).join('\n')}\n`);
    };
    rewrite(a, (lines) => lines.toSpliced(2, 1));
    rewrite(b, (lines) => lines.with(1, (lines[1] ?? '').replace('meal', 'mdal')));
    rewrite(c, (lines) => lines.toReversed());
    rewrite(d, (lines) => lines.with(1, 'not a record'));
    const found = await differences(plain.path);
    expect(found).toEqual(expect.arrayContaining([`file_truncated ${a}`, `counts_differ ${a}`]));
    expect(found).toEqual(expect.arrayContaining([`file_changed ${b}`, `record_invalid ${d}:2`]));
    expect(found.filter((text) => text.includes(c))).toEqual([`file_changed ${c}`]);
    const said = await details(plain.path);
    expect(said).toMatch(/received before the line above it: reordered\?/);
    expect(said).toContain('records: 4 instead of 5');
    expect(said).toContain('records of type "daily.data.meal.created": 4 instead of 5');
  });

  it('follows the chain of the manifest: lines removed, reordered, put in, changed, torn; and no manifest', async () => {
    const { path: whole, lines, files: all, rewrite } = await makeArchive({}, 4);
    const [l1 = '', l2 = '', l3 = '', l4 = ''] = lines;
    const of = async (...left: string[]): Promise<string[]> => {
      rewrite(left);
      return differences(whole);
    };
    expect(await of(l1, l3, l4)).toEqual(['chain_broken _manifest.jsonl:2', `file_extra ${all[1]}`]);
    expect(await details(whole)).toContain('lines between were removed');
    expect(await of(l1, l3, l2, l4)).toEqual([2, 3, 4].map((n) => `chain_broken _manifest.jsonl:${n}`));
    expect(await details(whole)).toContain(
      'follows from line 3, not from the one before it: lines were reordered',
    );
    await of(l2, l3, l4);
    expect(await details(whole)).toContain('was not the first line');
    expect(await of(l1, l1, l2, l3, l4)).toEqual(['chain_broken _manifest.jsonl:2']);
    expect(await of(l1.replace('"records":5', '"records":6'), l2, l3, l4)).toEqual([
      'chain_broken _manifest.jsonl:2',
      `counts_differ ${all[0]}`,
    ]);
    expect(await of(...lines, '{"file":')).toEqual(['manifest_line_invalid _manifest.jsonl:5']);
    rmSync(join(whole, '_manifest.jsonl'));
    expect((await differences(whole))[0]).toBe('manifest_missing _manifest.jsonl');
  });

  it('finds a cut end of the manifest, for those who noted the head', async () => {
    const { lines, rewrite } = made;
    const { head } = (await verifyArchive(path)).manifest;
    expect(head).toBe(hashLine(lines.at(-1) ?? ''));
    const heads = [{ head, where: null }];
    expect(await differences(path, { heads })).toEqual([]);
    rewrite(lines.slice(0, -1));
    rmSync(join(path, files[2]));
    expect(await differences(path)).toEqual([]);
    expect(await differences(path, { heads })).toEqual(['head_missing _manifest.jsonl']);
  });

  it('judges a file by its newest line: takes what an erasure rewrote or removed, and names what came back', async () => {
    const { path: plain, files: all } = await makeArchive({ compress: 'none' });
    const [a = '', b = ''] = all;
    const text = readFileSync(join(plain, a), 'utf8');
    const kept = text
      .split('\n')
      .slice(0, 2)
      .map((line) => `${line}\n`)
      .join('');
    const removed = readFileSync(join(plain, b));
    const writer = new ManifestWriter(plain, SILENT);
    const erasure = { erasure: 'made-up-receipt', at: '2026-11-21T04:00:00.000Z' };
    const times = [...kept.matchAll(/"received_at":"([^"]+)"/g)].map(([, time = '']) => time);
    writeFileSync(join(plain, a), kept);
    await writer.append({
      ...erasure,
      file: a,
      removed: 3,
      records: 2,
      bytes: Buffer.byteLength(kept),
      sha256: hashLine(kept),
      first_received_at: times[0] ?? null,
      last_received_at: times[1] ?? null,
      types: { 'daily.data.meal.created': 2 },
    });
    rmSync(join(plain, b));
    const nothing = { records: 0, bytes: 0, sha256: null, first_received_at: null, last_received_at: null };
    await writer.append({ ...erasure, file: b, removed: 5, ...nothing, types: {} });
    const report = await verifyArchive(plain);
    expect(report).toMatchObject({ files: 2, records: 7, differences: [] });
    expect(report.notes.map(({ file, detail }) => `${file} ${detail}`)).toEqual([
      `${a} 3 records removed by erasure made-up-receipt at 2026-11-21T04:00:00.000Z`,
      `${b} the file removed by erasure made-up-receipt at 2026-11-21T04:00:00.000Z`,
    ]);
    writeFileSync(join(plain, a), text);
    writeFileSync(join(plain, b), removed);
    expect(await differences(plain)).toEqual(
      expect.arrayContaining([`file_changed ${a}`, `file_returned ${b}`]),
    );
  });

  it('fault 27: takes no manifest line that leads out of the archive', async () => {
    for (const name of ['../x.ndjson', '/etc/passwd', 'a//b', 'a/./b', 'a\\b']) {
      made.rewrite([JSON.stringify({ ...JSON.parse(made.lines[0] ?? ''), file: name })]);
      expect((await differences(path))[0]).toBe('manifest_line_invalid _manifest.jsonl:1');
    }
  });

  it('counts the faults of a ruined file instead of naming thousands', async () => {
    writeFileSync(join(path, 'ruined.ndjson'), 'x\n'.repeat(5000));
    const found = (await verifyArchive(path)).differences;
    expect(found.length).toBeLessThan(30);
    expect(found.at(-1)).toMatchObject({ file: 'ruined.ndjson', detail: 'and 4981 more in this file' });
  });

  it('refuses a folder that is no archive, and stops on a signal', async () => {
    mkdirSync(join(path, 'empty'));
    for (const name of ['gone', files[1], 'empty'])
      await expect(verifyArchive(join(path, name))).rejects.toMatchObject({ code: 'archive_unreadable' });
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
    const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2]);
    const two = join(path, 'two.ndjson.zst');
    writeFileSync(two, Buffer.concat([skippable, first, skippable, first]));
    expect((await items(two)).map(({ kind }) => kind)).toEqual(Array(10).fill('record'));
    writeFileSync(two, Buffer.concat([first, zstdCompressSync('x\n'), Buffer.from('none')]));
    expect((await items(two)).slice(5)).toMatchObject([
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
    const { path, files } = await makeArchive();
    const file = join(path, files[0]!);
    writeFileSync(file, gzipSync(gunzipSync(readFileSync(file)).subarray(0, -1)));
    expect((await items(path)).filter(({ kind }) => kind === 'problem')).toEqual([
      { kind: 'problem', file: files[0], line: 5, reason: 'the line has no end' },
    ]);
  });
});
