import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { deliver } from '../sinks/support.ts';
import { proofIn, writeFiles } from '../support/archives.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig, type Ended } from '../support/millrace.ts';
import {
  append,
  codesIn,
  forge,
  linesOf,
  removalOf,
  signingForger,
  unsigned,
  verifyAs as verify,
} from './forger.ts';

interface Place {
  readonly archive: string;
  readonly erasure: string;
  readonly config: string;
  /** Files of the archive, in the order of the manifest. */
  readonly files: readonly string[];
}

/** An archive as a receiver writes it: finished files of five records, each of a user of its own number modulo 7. */
async function place(files = 3): Promise<Place> {
  const folder = await temporaryFolder();
  const erasure = join(folder, 'erasure');
  const config = writeConfig(folder, { erasure: { path: erasure } });
  const archive = join(folder, 'archive');
  await write({ archive, erasure }, 1, files);
  return { archive, erasure, config, files: linesOf(archive).map(({ file }) => String(file)) };
}

/** Writes more of the files. @returns what the receiver said */
async function write(
  { archive, erasure }: Pick<Place, 'archive' | 'erasure'>,
  from: number,
  files: number,
  whenOpen: () => void = () => undefined,
): Promise<readonly string[]> {
  const batches = Array.from({ length: files }, (_, n) => deliver(from + n * 5, 5, { headers: {} }));
  const options = { compress: 'none', rotate: { bytes: 1024 } };
  const lines = await writeFiles(archive, batches, { options, proof: proofIn(erasure), whenOpen });
  return lines.map(({ message }) => message);
}

/** The exit code, and the codes of what was found, each once. */
async function found(ended: Promise<Ended>): Promise<[number | null, string[]]> {
  return [(await ended).code, [...new Set(codesIn(await ended))]];
}

/** Erases a user; returns the id of the receipt. */
async function erase({ config }: Place, user: string): Promise<string> {
  const ended = await millrace(['erase', user, '--now', '--json', '--config', config]);
  expect([ended.code, ended.stderr]).toEqual([0, expect.any(String)]);
  const { receipts } = JSON.parse(ended.stdout) as { receipts: { receipt: string }[] };
  return receipts[0]?.receipt ?? '';
}

describe('a manifest as a receiver and an erasure write it', () => {
  it('has every line signed by a key that lies apart, for its owner only, and passes', async () => {
    const where = await place();
    await erase(where, 'user-3');
    const key = join(where.erasure, 'manifest.key');
    expect(statSync(key).mode & 0o077).toBe(0);
    const shown = await millrace(['keys', '--config', where.config]);
    const signers = linesOf(where.archive).map(({ signed_by: by }) => by);
    expect(signers.length).toBeGreaterThan(3);
    expect(new Set(signers)).toEqual(new Set([shown.stdout.trim()]));
    expect(readFileSync(key, 'utf8')).toContain('PRIVATE KEY');
    expect(shown.stdout).not.toContain('PRIVATE');
    const ended = await verify(where);
    expect([ended.code, ended.stdout]).toEqual([0, expect.stringContaining(`signed by ${shown.stdout}`)]);
    // The public key is enough to find it.
    const elsewhere = await millrace([
      'archive',
      'verify',
      where.archive,
      '--public-key',
      shown.stdout.trim(),
    ]);
    expect(elsewhere.code).toBe(0);
  });
});

describe('fault 43: lines forged without the key are reported', () => {
  it('an erasure that never was hides no removed file, with every hash made good', async () => {
    const where = await place();
    const head = JSON.parse((await verify(where, '--json')).stdout).manifest.head as string;
    const [, file = ''] = where.files;
    rmSync(join(where.archive, file));
    append(where.archive, [removalOf(file)]);
    const expected = [4, ['line_unsigned', 'file_missing']];
    expect(await found(verify(where, '--head', head))).toEqual(expected);
    // Nothing but the archive and its head is at hand.
    expect(await found(millrace(['archive', 'verify', where.archive, '--head', head]))).toEqual(expected);
    const exported = await millrace(['export', where.archive, '--out', join(where.erasure, '../out')]);
    expect(exported.code).toBe(3);
    expect(exported.stderr).toContain(`${file}: in the manifest, but missing`);
  });

  it('signed with a key of the forger’s own', async () => {
    const where = await place();
    const [, file = ''] = where.files;
    rmSync(join(where.archive, file));
    append(where.archive, [removalOf(file)], signingForger());
    expect(await found(verify(where))).toEqual([4, ['line_untrusted', 'file_missing']]);
    expect(await found(millrace(['archive', 'verify', where.archive]))).toEqual([
      4,
      ['line_untrusted', 'file_missing'],
    ]);
    // All of the manifest: then only who knows the right key can tell.
    forge(where.archive, linesOf(where.archive), signingForger());
    const [code, codes] = await found(verify(where));
    expect([code, codes]).toEqual([4, expect.arrayContaining(['line_untrusted', 'head_missing'])]);
  });

  it('a changed line with its old signature, and all links behind it made good', async () => {
    const where = await place();
    const lines = linesOf(where.archive);
    forge(where.archive, lines.with(0, { ...lines[0], records: 4 }));
    const [code, codes] = await found(verify(where));
    expect([code, codes]).toEqual([4, expect.arrayContaining(['line_forged', 'head_missing'])]);
  });

  it('signatures taken off, as if it were an older archive', async () => {
    const where = await place();
    forge(where.archive, linesOf(where.archive).map(unsigned));
    expect(await found(verify(where))).toEqual([4, ['head_missing']]);
    const { stdout } = await millrace(['keys', 'public', '--config', where.config]);
    const elsewhere = millrace(['archive', 'verify', where.archive, '--public-key', stdout.trim()]);
    expect(await found(elsewhere)).toEqual([4, ['manifest_unsigned']]);
  });
});

describe('an erasure counts only with its receipt', () => {
  it('which is there, is as it was signed, and says the same of the same file', async () => {
    const where = await place();
    const one = await erase(where, 'user-3');
    const other = await erase(where, 'user-4');
    expect((await verify(where)).code).toBe(0);
    const receipts = join(where.erasure, 'receipts');
    const path = join(receipts, `${one}.json`);
    const text = readFileSync(path, 'utf8');
    rmSync(path);
    const [code, codes] = await found(verify(where));
    expect([code, codes]).toEqual([4, expect.arrayContaining(['receipt_missing'])]);
    expect((await verify(where)).stdout).toContain('copy it from the receiver that erased');
    for (const instead of [
      text.replace(/"records_removed": \d+/, '"records_removed": 1'),
      readFileSync(join(receipts, `${other}.json`), 'utf8'),
      readFileSync(join(receipts, `${other}.json`), 'utf8').replaceAll(other, one),
      JSON.stringify(unsigned(JSON.parse(text) as Record<string, unknown>)),
      'not JSON',
    ]) {
      writeFileSync(path, instead);
      expect(await found(verify(where))).toEqual([4, expect.arrayContaining(['receipt_forged'])]);
    }
    writeFileSync(path, text);
    expect((await verify(where)).code).toBe(0);
  });

  it('also in an archive from before lines were signed: a receipt says nothing of another file', async () => {
    const where = await place();
    const id = await erase(where, 'user-3');
    forge(where.archive, linesOf(where.archive).map(unsigned));
    rmSync(join(where.erasure, 'heads'), { recursive: true });
    expect((await verify(where)).code).toBe(0);
    const [file = ''] = where.files;
    rmSync(join(where.archive, file));
    append(where.archive, [removalOf(file, id)]);
    expect(await found(verify(where))).toEqual([4, ['receipt_differs', 'file_missing']]);
    forge(where.archive, [...linesOf(where.archive).slice(0, -1), removalOf(file)]);
    expect(await found(verify(where))).toEqual([4, ['receipt_missing', 'file_missing']]);
  });

  it('continues without one, while its request waits', async () => {
    const where = await place();
    const id = await erase(where, 'user-3');
    rmSync(join(where.erasure, 'receipts', `${id}.json`));
    writeFileSync(join(where.erasure, 'requests', `${id}.json`), '{}');
    expect((await verify(where)).code).toBe(0);
  });
});

describe('fault 43: an older manifest restored is reported', () => {
  it('with the files it does not list removed, also when a receiver has continued it', async () => {
    const where = await place();
    const copy = join(where.erasure, '../copy');
    cpSync(where.archive, copy, { recursive: true });
    await write(where, 100, 2);
    expect((await verify(where)).code).toBe(0);
    rmSync(where.archive, { recursive: true });
    cpSync(copy, where.archive, { recursive: true });
    expect(await found(verify(where))).toEqual([4, ['head_missing']]);
    const said = await write(where, 200, 1);
    expect(said.join('\n')).toContain('does not hold its noted head');
    await write(where, 300, 1);
    const ended = await verify(where);
    expect(ended.code).toBe(4);
    expect(ended.stdout).toMatch(/head_missing: no line has the hash [0-9a-f]{64}, noted in .*heads/);
  });

  it('or removed as a whole', async () => {
    const where = await place(1);
    rmSync(join(where.archive, '_manifest.jsonl'));
    expect(await found(verify(where))).toEqual([
      4,
      expect.arrayContaining(['manifest_missing', 'head_missing']),
    ]);
  });

  it('and a note that was changed is not believed; one that a crash left behind is no fault', async () => {
    const where = await place();
    const [name = ''] = readdirSync(join(where.erasure, 'heads'));
    const note = join(where.erasure, 'heads', name);
    const before = readFileSync(note, 'utf8');
    await write(where, 100, 1);
    const now = readFileSync(note, 'utf8');
    writeFileSync(note, before);
    expect((await verify(where)).code).toBe(0);
    writeFileSync(note, now.replace(/"head":"[0-9a-f]{4}/, '"head":"0000'));
    expect(await found(verify(where))).toEqual([4, ['head_forged']]);
  });
});

it('a head that cannot be noted stops no file from being finished, and lists none twice', async () => {
  const where = await place();
  const heads = join(where.erasure, 'heads');
  const block = (): void => {
    rmSync(heads, { recursive: true });
    writeFileSync(heads, 'in the way');
  };
  expect((await write(where, 100, 2, block)).join('\n')).toContain('head of the manifest could not be noted');
  expect(linesOf(where.archive)).toHaveLength(5);
  // Where an archive lies must be noted before anything is written to it.
  await expect(write(where, 150, 1)).rejects.toThrow(heads);
  rmSync(heads);
  await write(where, 200, 1);
  expect((await verify(where)).code).toBe(0);
});

describe('an archive from before lines were signed', () => {
  it('stays readable, is reported as unsigned, and is vouched for by the first signed line', async () => {
    const where = await place(0);
    await writeFiles(where.archive, [deliver(1, 5, { headers: {} })], { options: { compress: 'none' } });
    rmSync(join(where.erasure, 'heads'), { recursive: true, force: true });
    const ended = await verify(where);
    expect([ended.code, ended.stdout]).toEqual([0, expect.stringContaining('unsigned: 1 lines, not proven')]);
    await write(where, 100, 1);
    const after = await verify(where);
    expect([after.code, after.stdout]).toEqual([
      0,
      expect.stringContaining('unsigned: 1 lines, from before'),
    ]);
    const [first = {}, ...rest] = linesOf(where.archive);
    forge(where.archive, [{ ...first, records: 6 }, ...rest]);
    const [code, codes] = await found(verify(where));
    expect([code, codes]).toEqual([4, expect.arrayContaining(['line_forged'])]);
  });
});

describe('repairing a signed manifest', () => {
  it('leaves it as it is where somebody without the key wrote into it', async () => {
    const where = await place();
    const [, file = ''] = where.files;
    rmSync(join(where.archive, file));
    append(where.archive, [removalOf(file)]);
    const forged = readFileSync(join(where.archive, '_manifest.jsonl'), 'utf8');
    const before = await found(verify(where));
    expect((await verify(where, '--repair')).stderr).toContain('nothing to repair');
    expect(readFileSync(join(where.archive, '_manifest.jsonl'), 'utf8')).toBe(forged);
    expect(await found(verify(where))).toEqual(before);
  });

  it('cuts off a torn last line with the key; without it, it does nothing', async () => {
    const where = await place();
    const manifest = join(where.archive, '_manifest.jsonl');
    const sound = readFileSync(manifest, 'utf8');
    writeFileSync(manifest, `${sound}{"file":"torn`);
    const without = await millrace(['archive', 'verify', where.archive, '--repair']);
    expect([without.code, without.stderr]).toEqual([
      2,
      expect.stringContaining('needs the key from --config'),
    ]);
    expect(readFileSync(manifest, 'utf8')).not.toBe(sound);
    expect((await verify(where, '--repair')).code).toBe(0);
    expect(readFileSync(manifest, 'utf8')).toBe(sound);
  });
});
