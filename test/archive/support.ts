import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST } from '../../src/core/archive.ts';
import { verifyArchive, type VerifyOptions } from '../../src/archive/verify.ts';
import { deliver, tempFolder } from '../sinks/support.ts';
import { writeFiles } from '../support/archives.ts';

export interface MadeArchive {
  readonly path: string;
  /** In the order of the manifest, which is that in which they were finished. */
  readonly files: readonly string[];
  /** Lines of the manifest, without their line breaks. */
  readonly lines: readonly string[];
  /** Replaces the manifest's lines with these. */
  readonly rewrite: (lines: readonly string[]) => void;
}

/** Finished files of five records each. */
export async function makeArchive(options: object = {}, count = 3): Promise<MadeArchive> {
  const path = tempFolder();
  const batches = Array.from({ length: count }, (_, n) => deliver(n * 5 + 1, 5));
  await writeFiles(path, batches, { options: { rotate: { bytes: 1024 }, ...options } });
  const manifest = join(path, MANIFEST);
  const lines = readFileSync(manifest, 'utf8').trimEnd().split('\n');
  const files = lines.map((line) => (JSON.parse(line) as { file: string }).file);
  const rewrite = (all: readonly string[]): void =>
    writeFileSync(manifest, all.map((line) => `${line}\n`).join(''));
  return { path, files, lines, rewrite };
}

/** Each difference as `code file:line`. */
export async function differences(path: string, options: VerifyOptions = {}): Promise<string[]> {
  const report = await verifyArchive(path, options);
  return report.differences.map(
    ({ code, file, line }) => `${code} ${file}${line === null ? '' : `:${line}`}`,
  );
}

/** The text of every difference. */
export async function details(path: string, options: VerifyOptions = {}): Promise<string> {
  const report = await verifyArchive(path, options);
  return report.differences.map(({ detail }) => detail).join('\n');
}
