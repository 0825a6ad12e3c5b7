import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST } from '../../src/core/archive.ts';
import { verifyArchive, type VerifyOptions } from '../../src/archive/verify.ts';
import { deliver, filesSink, signal, tempFolder } from '../sinks/support.ts';

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
  const { sink } = filesSink(path, { rotate: { bytes: 1024 }, ...options });
  await sink.open();
  for (let i = 0; i < count; i += 1) await sink.send(deliver(i * 5 + 1, 5), signal);
  await sink.close(signal);
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
