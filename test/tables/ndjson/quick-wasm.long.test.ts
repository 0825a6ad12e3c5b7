import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/millrace.ts';
import { skipped } from '../../support/requirements.ts';

const COMPILER = join(ROOT, 'node_modules/assemblyscript');
const lack = existsSync(COMPILER) ? null : 'needs assemblyscript: npm ci';

test.skipIf(lack !== null)(`quick-wasm.ts is what quick.as makes${skipped(lack)}`, () => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, '.ci/wasm.mjs'), '--check'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
