import { availableParallelism } from 'node:os';
import type { ReadAhead } from '../lib/read-ahead.ts';
import type { Step } from './unit.ts';

/** Threads of libuv's pool, which decompress. */
const POOL = 4;
/** Bytes a step and a problem take, about, beside the bodies of its events. */
const OVERHEAD = 512;

/**
 * How far files are read before their turn. One thread can decompress a file no faster than another program can, so several
 * do; what is found in the files after the first waits, 8 MiB for each of them at most. The lines are looked at in the main
 * thread: that is the smaller part, and other threads would need the keys, the envelope's rules and the list of the erased.
 */
export const AHEAD: Pick<ReadAhead<unknown, Step>, 'width' | 'most' | 'weightOf'> = {
  width: Math.min(POOL, availableParallelism()),
  most: 8 * 2 ** 20,
  weightOf: ({ found, problems }) =>
    found.reduce(
      (sum, { event }) => sum + event.body.length,
      (1 + found.length + problems.length) * OVERHEAD,
    ),
};

/** Units whose files a store may begin to fetch. */
export const IN_SIGHT = 16;
