import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { parseConfig } from '../../src/config/load.ts';
import type { LoadedConfig } from '../../src/config/config.ts';
import { MillraceError } from '../../src/core/errors.ts';

/** The least a config needs; tests put their own lines before it. */
export const BASE = `
sinks: { archive: { type: files, path: ./data/archive } }
`;

export function parse(
  text: string,
  env: Record<string, string | undefined> = {},
  lenient = false,
): LoadedConfig {
  return parseConfig(text, { file: 'c.yaml', env, lenient });
}

/** The error a config ends with, its detail as lines. */
export function failure(
  text: string,
  env: Record<string, string | undefined> = {},
  lenient = false,
): { code: string; lines: string[] } {
  try {
    parse(text, env, lenient);
  } catch (error) {
    if (error instanceof MillraceError) return { code: error.code, lines: error.detail.split('\n') };
    throw error;
  }
  throw new Error('the config was accepted');
}

export function temporaryFile(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}
