import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { RepairAction, RepairReport } from '../../src/archive/repair-plan.ts';
import { repairArchive } from '../../src/archive/repair.ts';
import { ManifestWriter } from '../../src/archive/manifest-writer.ts';
import { SILENT } from '../../src/core/sink.ts';
import { deliver, filesSink, ids, signal, tempFolder } from '../sinks/support.ts';
import { writeFiles } from '../support/archives.ts';
import { differences, makeArchive } from './support.ts';

const NOW = Date.UTC(2026, 10, 21, 4);

async function repair(path: string, dryRun = false): Promise<RepairReport & { said: readonly string[] }> {
  const called: RepairAction[] = [];
  const report = await repairArchive(path, { dryRun, now: NOW, onAction: (action) => called.push(action) });
  // What is said is what is done, each once.
  expect(called).toEqual(report.actions);
  return { ...report, said: called.map(({ action, file }) => `${action} ${file}`) };
}

function manifestOf(path: string): string[] {
  return readFileSync(join(path, '_manifest.jsonl'), 'utf8').trimEnd().split('\n');
}

describe('repairArchive', () => {
  it('does nothing to a sound archive', async () => {
    const { path, lines } = await makeArchive();
    expect((await repair(path)).said).toEqual([]);
    expect(manifestOf(path)).toEqual(lines);
  });

  it('creates a lost manifest from the files, and says so in every line', async () => {
    const { path, files } = await makeArchive();
    rmSync(join(path, '_manifest.jsonl'));
    const { said, before, after } = await repair(path);
    expect(said).toEqual([
      'write_manifest _manifest.jsonl',
      ...files.toSorted().map((file) => `list_file ${file}`),
    ]);
    expect(before.differences).not.toEqual([]);
    expect(after).toMatchObject({ records: 15, differences: [] });
    expect(after.notes.map(({ detail }) => detail)).toEqual(
      files.map(() => 'listed by a repair at 2026-11-21T04:00:00.000Z; proven from then on only'),
    );
  });

  it('changes nothing on a dry run', async () => {
    const { path, files, lines } = await makeArchive();
    appendFileSync(join(path, '_manifest.jsonl'), '{"file":"torn');
    mkdirSync(join(path, '_open', 'abcdefabcdef'));
    writeFileSync(join(path, '_open', 'abcdefabcdef', 'x.tmp'), 'half');
    renameSync(join(path, files[0] ?? ''), join(path, 'other.ndjson.gz'));
    const { said, after } = await repair(path, true);
    expect(said).toEqual([
      'remove_temporary _open/abcdefabcdef/x.tmp',
      'move_file other.ndjson.gz',
      'cut_line _manifest.jsonl',
    ]);
    expect(after.differences).not.toEqual([]);
    expect(manifestOf(path)).toEqual([...lines, '{"file":"torn']);
    expect(existsSync(join(path, '_open', 'abcdefabcdef', 'x.tmp'))).toBe(true);
    expect((await repair(path)).after.differences).toEqual([]);
    expect(manifestOf(path)).toEqual(lines);
    expect(existsSync(join(path, '_open', 'abcdefabcdef', 'x.tmp'))).toBe(false);
  });

  it.each<[what: string, damage: (lines: readonly string[]) => readonly string[]]>([
    ['reordered', ([a = '', b = '', ...rest]) => [b, a, ...rest]],
    ['removed', (lines) => lines.toSpliced(1, 1)],
    ['changed', (lines) => lines.with(2, (lines[2] ?? '').replace('"records":5', '"records":6'))],
    ['no lines', (lines) => lines.with(1, 'not a line of a manifest')],
  ])('leaves a manifest whose lines are %s as it is, and links nothing again', async (_, damage) => {
    const { path, files, lines, rewrite } = await makeArchive({}, 5);
    const damaged = damage(lines);
    rewrite([...damaged]);
    renameSync(join(path, files[0] ?? ''), join(path, 'other.ndjson.gz'));
    const { said, before, after } = await repair(path);
    expect(said).toEqual([]);
    expect(manifestOf(path)).toEqual(damaged);
    expect(after.differences).toEqual(before.differences);
    expect(after.differences.map(({ code }) => code)).toContain('chain_broken');
    expect(existsSync(join(path, 'other.ndjson.gz'))).toBe(true);
  });

  it('never hides a loss: a missing and a changed file stay differences', async () => {
    const { path, files } = await makeArchive();
    const [a = '', b = ''] = files;
    rmSync(join(path, a));
    const lines = gunzipSync(readFileSync(join(path, b)))
      .toString()
      .split('\n');
    writeFileSync(join(path, b), gzipSync(lines.with(1, 'not a record').join('\n')));
    const { after } = await repair(path);
    expect(after.records).toBe(9);
    expect(after.differences.map(({ code, file }) => `${code} ${file}`)).toEqual(
      expect.arrayContaining([`record_invalid ${b}`, `file_missing ${a}`]),
    );
    expect(await ids(join(path, files[2] ?? ''))).toHaveLength(5);
  });

  it('lists a complete file that is not listed; not a copy, not a cut one, not an erased one', async () => {
    const { path, files } = await makeArchive();
    const [a = '', b = ''] = files;
    const other = await makeArchive({}, 1);
    writeFileSync(
      join(path, 'extra.ndjson'),
      gunzipSync(readFileSync(join(other.path, other.files[0] ?? ''))),
    );
    writeFileSync(join(path, 'copy.ndjson.gz'), readFileSync(join(path, b)));
    writeFileSync(join(path, 'cut.ndjson.gz'), readFileSync(join(path, b)).subarray(0, -9));
    const nothing = { records: 0, bytes: 0, sha256: null, first_received_at: null, last_received_at: null };
    const erasure = { erasure: 'made-up-receipt', at: new Date(NOW).toISOString(), removed: 5, types: {} };
    await new ManifestWriter(path, SILENT).append({ ...erasure, file: a, ...nothing });
    const { said } = await repair(path);
    expect(said).toEqual(['list_file extra.ndjson']);
    expect(await differences(path)).toEqual(
      expect.arrayContaining(['file_extra copy.ndjson.gz', 'file_extra cut.ndjson.gz', `file_returned ${a}`]),
    );
  });

  it('brings files home that changed names in a circle', async () => {
    const { path, files } = await makeArchive({}, 4);
    const [a = '', b = '', c = '', d = ''] = files.map((file) => join(path, file));
    const before = await ids(path);
    renameSync(a, join(path, 'aside'));
    renameSync(c, a);
    renameSync(b, c);
    renameSync(join(path, 'aside'), b);
    renameSync(d, join(path, 'elsewhere.ndjson.gz'));
    const { after } = await repair(path);
    expect(after.differences).toEqual([]);
    expect(await ids(path)).toEqual(before);
  });

  it('lists a kept event from its path', async () => {
    const path = tempFolder();
    await writeFiles(path, [], { kept: [deliver(1, 1)[0]!.event] });
    expect(await differences(path)).toEqual([]);
    const [line = ''] = manifestOf(path);
    const claim = JSON.parse(line) as { readonly file: string };
    rmSync(join(path, '_manifest.jsonl'));
    expect(await differences(path)).toEqual(['manifest_missing _manifest.jsonl', `file_extra ${claim.file}`]);
    expect((await repair(path)).after.differences).toEqual([]);
    const [again = ''] = manifestOf(path);
    expect(JSON.parse(again)).toEqual({ ...JSON.parse(line), repaired_at: new Date(NOW).toISOString() });
    writeFileSync(join(path, claim.file), 'x');
    expect((await repair(path)).after.differences.map(({ code }) => code)).toEqual([
      'file_unreadable',
      'file_truncated',
    ]);
  });

  it('does not begin while a receiver writes', async () => {
    const path = tempFolder();
    const { sink } = filesSink(path);
    await sink.open();
    await sink.send(deliver(1, 1), signal);
    await expect(repair(path)).rejects.toMatchObject({ code: 'archive_in_use' });
    await sink.close(signal);
    expect((await repair(path)).said).toEqual([]);
  });

  it('follows no symbolic link in the place of the writers: no lock is made behind it', async () => {
    const { path } = await makeArchive();
    const elsewhere = tempFolder();
    mkdirSync(join(elsewhere, 'made-up'));
    rmSync(join(path, '_open'), { recursive: true, force: true });
    symlinkSync(elsewhere, join(path, '_open'));
    await repair(path);
    expect(readdirSync(elsewhere, { recursive: true })).toEqual(['made-up']);
  });
});
