import { readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ManifestWriter } from '../../src/archive/manifest-writer.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { makeContext } from '../sinks/support.ts';
import { details, differences, makeArchive } from './support.ts';
import { hashLine } from '../../src/lib/chained-log.ts';

describe('verifying names what was done to the files', () => {
  it('two swapped files, and where their bytes belong', async () => {
    const { path, files } = await makeArchive();
    const [a = '', b = ''] = files;
    renameSync(join(path, a), join(path, 'aside'));
    renameSync(join(path, b), join(path, a));
    renameSync(join(path, 'aside'), join(path, b));
    const report = await verifyArchive(path);
    const named = report.differences.filter(({ detail }) => detail.includes('it holds what is listed as'));
    // In the order of the manifest, which is that in which the two were finished.
    expect(new Map(named.map(({ file, detail }) => [file, detail.split('listed as ')[1]]))).toEqual(
      new Map([
        [a, b],
        [b, a],
      ]),
    );
    expect(named).toHaveLength(2);
    expect(report.records).toBe(15);
  });

  it('a file under another name', async () => {
    const { path, files } = await makeArchive();
    const [a = ''] = files;
    renameSync(join(path, a), join(path, 'other.ndjson.gz'));
    expect(await differences(path)).toEqual(['file_extra other.ndjson.gz', `file_missing ${a}`]);
    expect(await details(path)).toContain('its bytes are in other.ndjson.gz');
  });

  it('one removed line, one flipped bit, lines in another order', async () => {
    const { path, files } = await makeArchive({ compress: 'none' });
    const [a = '', b = '', c = ''] = files;
    const rewrite = (file: string, change: (lines: string[]) => string[]): void => {
      const lines = readFileSync(join(path, file), 'utf8').trimEnd().split('\n');
      writeFileSync(
        join(path, file),
        change(lines)
          .map((line) => `${line}\n`)
          .join(''),
      );
    };
    rewrite(a, (lines) => lines.toSpliced(2, 1));
    rewrite(b, (lines) => lines.with(1, (lines[1] ?? '').replace('meal', 'mdal')));
    rewrite(c, (lines) => lines.toReversed());
    const found = await differences(path);
    expect(found).toEqual(expect.arrayContaining([`file_truncated ${a}`, `counts_differ ${a}`]));
    expect(found).toContain(`file_changed ${b}`);
    expect(found.filter((text) => text.includes(c))).toEqual([`file_changed ${c}`]);
    expect(await details(path)).toMatch(/received before the line above it: reordered\?/);
  });
});

describe('verifying names what was done to the manifest', () => {
  it('a removed line, lines in another order, a line put in', async () => {
    const { path, files, lines, rewrite } = await makeArchive({}, 4);
    const [l1 = '', l2 = '', l3 = '', l4 = ''] = lines;
    rewrite([l1, l3, l4]);
    expect(await differences(path)).toEqual(['chain_broken _manifest.jsonl:2', `file_extra ${files[1]}`]);
    expect(await details(path)).toContain('lines between were removed');
    rewrite([l1, l3, l2, l4]);
    expect(await differences(path)).toEqual([2, 3, 4].map((n) => `chain_broken _manifest.jsonl:${n}`));
    expect(await details(path)).toContain(
      'follows from line 3, not from the one before it: lines were reordered',
    );
    rewrite([l2, l3, l4]);
    expect(await details(path)).toContain('was not the first line');
    rewrite([l1, l1, l2, l3, l4]);
    expect(await differences(path)).toEqual(['chain_broken _manifest.jsonl:2']);
  });

  it('a cut end, for those who noted the head', async () => {
    const { path, files, lines, rewrite } = await makeArchive();
    const { head } = (await verifyArchive(path)).manifest;
    expect(head).toBe(hashLine(lines.at(-1) ?? ''));
    expect(await differences(path, { heads: [{ head, where: null }] })).toEqual([]);
    rewrite(lines.slice(0, -1));
    rmSync(join(path, files.at(-1) ?? ''));
    expect(await differences(path)).toEqual([]);
    expect(await differences(path, { heads: [{ head, where: null }] })).toEqual([
      'head_missing _manifest.jsonl',
    ]);
  });
});

describe('verifying judges a file by its newest line', () => {
  it('takes what an erasure rewrote or removed, and names what came back', async () => {
    const { path, files } = await makeArchive({ compress: 'none' });
    const [a = '', b = ''] = files;
    const text = readFileSync(join(path, a), 'utf8');
    const kept = text
      .split('\n')
      .slice(0, 2)
      .map((line) => `${line}\n`)
      .join('');
    const removed = readFileSync(join(path, b));
    const writer = new ManifestWriter(path, makeContext().log);
    const erasure = { erasure: 'made-up-receipt', at: '2026-11-21T04:00:00.000Z' };
    const times = [...kept.matchAll(/"received_at":"([^"]+)"/g)].map(([, time = '']) => time);
    writeFileSync(join(path, a), kept);
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
    unlinkSync(join(path, b));
    const nothing = { records: 0, bytes: 0, sha256: null, first_received_at: null, last_received_at: null };
    await writer.append({ ...erasure, file: b, removed: 5, ...nothing, types: {} });
    const report = await verifyArchive(path);
    expect(report).toMatchObject({ files: 2, records: 7, differences: [] });
    expect(report.notes.map(({ file, detail }) => `${file} ${detail}`)).toEqual([
      `${a} 3 records removed by erasure made-up-receipt at 2026-11-21T04:00:00.000Z`,
      `${b} the file removed by erasure made-up-receipt at 2026-11-21T04:00:00.000Z`,
    ]);
    writeFileSync(join(path, a), text);
    writeFileSync(join(path, b), removed);
    expect(await differences(path)).toEqual(
      expect.arrayContaining([`file_changed ${a}`, `file_returned ${b}`]),
    );
  });
});
