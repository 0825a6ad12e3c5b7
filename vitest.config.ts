import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** The long lane, `npm run test:long`: files of its own, and properties again, with many runs (test/support/run-count.ts). */
const isLong = process.env['MILLRACE_LONG'] !== undefined;
const LONG = 'test/**/*.long.test.ts';

export default defineConfig({
  test: {
    include: isLong ? [LONG, 'test/**/*.property.test.ts'] : ['test/**/*.test.ts'],
    exclude: isLong ? [] : [LONG],
    // Not every room has long files.
    passWithNoTests: isLong,
    globalSetup: ['build', 'in-memory', 'of-the-run'].map((name) => `test/support/${name}.ts`),
    pool: 'forks',
    // Files of one worker share the modules they load; most of a short file's time was loading them again.
    isolate: false,
    // With all of these in memory, the first full collections free next to nothing.
    execArgv: ['--initial-old-space-size=512', '--max-semi-space-size=32'],
    // Tests of processes wait about as long as they compute.
    maxWorkers: Math.ceil(availableParallelism() * 2),
    sequence: { sequencer: LongestFirst },
    // For what hangs; on a machine with ten processes a core, what takes five seconds takes fifty.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
