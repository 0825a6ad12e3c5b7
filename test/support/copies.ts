import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/**
 * Gives each test a copy of a folder that is made once, when the first asks.
 * @param make fills the folder, which is not there yet
 */
export function copiesOf(make: (root: string) => Promise<unknown>): () => Promise<string> {
  const base = mkdtempSync(join(tmpdir(), 'millrace-test-'));
  const template = join(base, 'template');
  let making: Promise<unknown> | null = null;
  afterAll(() => rmSync(base, { recursive: true, force: true }));
  return async () => {
    await (making ??= make(template));
    const root = mkdtempSync(join(base, 'copy-'));
    cpSync(template, root, { recursive: true });
    return root;
  };
}
