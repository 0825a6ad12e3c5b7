import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Files of one worker share the modules they load; most of a short file's time was loading them again.
    isolate: false,
    // Tests of processes wait more than they compute.
    maxWorkers: 3,
    // Every process that a test starts reads V8's compiled form of the sources and packages here: half of a start was
    // compiling them.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/millrace-compiled') },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
