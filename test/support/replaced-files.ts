import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished } from 'vitest';

/**
 * Puts others in the place of functions of `node:fs/promises` until the test ends. `vi.mock` would miss the modules that an
 * earlier file of the same worker has loaded.
 * @param make given the real ones
 */
export function replaceFiles(make: (real: typeof files) => Partial<typeof files>): void {
  const real = { ...files };
  put(make(real));
  onTestFinished(() => put(real));
}

function put(functions: Partial<typeof files>): void {
  Object.assign(files, functions);
  syncBuiltinESMExports();
}
