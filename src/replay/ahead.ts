import { availableParallelism } from 'node:os';
import { inSight, readAhead } from '../lib/read-ahead.ts';
import type { Step, Unit } from './unit.ts';

/** Threads of libuv's pool, which decompress. */
const POOL = 4;
const MOST_BYTES_AHEAD = 8 * 2 ** 20;
/** About the bytes of a step or a problem, beside the bodies of its events. */
const OVERHEAD_BYTES = 512;
/** Units whose files a store may begin to fetch. */
const FETCHED = 16;

export interface UnitReader {
  /** Reads the unit behind a position in it. */
  readonly read: (unit: Unit, from: number, signal: AbortSignal) => AsyncIterable<Step>;
  /** Called with each unit a while before it is read. */
  readonly expect?: ((unit: Unit) => void) | undefined;
}

/**
 * Units with their steps, in order. Several files are decompressed at once, as one thread is slower than another program
 * can be; of the files after the first, 8 MiB each wait in memory.
 * @param from the position that the first unit is read behind
 */
export function stepsOf(
  units: AsyncIterable<Unit>,
  { read, expect = () => undefined }: UnitReader,
  from: number,
  signal: AbortSignal,
): AsyncIterable<readonly [unit: Unit, steps: AsyncIterable<Step>]> {
  let next = from;
  return readAhead(inSight(units, FETCHED, expect), {
    open: (unit) => {
      const steps = read(unit, next, signal);
      next = 0;
      return steps;
    },
    isEarly: ({ kind }) => kind === 'file',
    width: Math.min(POOL, availableParallelism()),
    most: MOST_BYTES_AHEAD,
    weightOf: ({ found, problems }) =>
      found.reduce(
        (sum, { event }) => sum + event.body.length,
        (1 + found.length + problems.length) * OVERHEAD_BYTES,
      ),
  });
}
