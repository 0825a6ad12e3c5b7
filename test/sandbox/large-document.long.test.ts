import { join } from 'node:path';
import { expect, test } from 'vitest';
import { millraceProcess } from '../support/millrace.ts';

/** As many as a document may have. */
const DAYS = 36_500;

test('a very large document streams in far less memory than it has bytes', async () => {
  const child = join(import.meta.dirname, 'large-document.ts');
  const ended = await millraceProcess([String(DAYS)], { program: [process.execPath, '--expose-gc', child] });
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  const { bytes, grown } = JSON.parse(ended.stdout) as { bytes: number; grown: number };
  expect(bytes).toBeGreaterThan(DAYS * 10_000);
  expect(grown).toBeLessThan(bytes / 8);
});
