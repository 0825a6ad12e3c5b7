import { randomFillSync } from 'node:crypto';
import type { TraceContext } from '../core/trace.ts';
import { isSampled, partsOf } from './spans.ts';

/** Which traces are kept. */
export interface Sampling {
  /** @returns the id of a new trace, null when none is begun */
  begin(): string | null;
  /** Whether what belongs to this trace is kept. */
  continues(trace: TraceContext): boolean;
}

const PARENT_BASED = 'parentbased_';
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;

/** By the name that the standard's sampler has: what it asks of the first 32 bits of an id, which are random. */
const BOUNDS: Readonly<Record<string, (share: number) => number>> = {
  always_on: () => 2 ** 32,
  always_off: () => 0,
  // As the SDKs in JavaScript have it, so that services that decide by the id decide alike.
  traceidratio: (share) => (share === 1 ? 2 ** 32 : Math.floor(share * 0xffffffff)),
};

/** Names that `OTEL_TRACES_SAMPLER` can have. */
export const SAMPLERS: readonly string[] = Object.keys(BOUNDS).flatMap((name) => [
  name,
  `${PARENT_BASED}${name}`,
]);

/**
 * Decides as the SDK's samplers do, and before anything is made for a span: that takes two random ids and a span of the
 * SDK, which costs more than all the rest of an event that is not traced.
 * @param name one of `SAMPLERS`
 * @param share 0 to 1, where the sampler goes by one
 */
export function samplingBy(name: string, share: number): Sampling {
  const isParentBased = name.startsWith(PARENT_BASED);
  const bound = BOUNDS[isParentBased ? name.slice(PARENT_BASED.length) : name]?.(share) ?? 0;
  return {
    begin: () => {
      const at = take(TRACE_BYTES);
      const folded =
        pool.readInt32BE(at) ^
        pool.readInt32BE(at + 4) ^
        pool.readInt32BE(at + 8) ^
        pool.readInt32BE(at + 12);
      return folded >>> 0 < bound ? pool.toString('hex', at, at + TRACE_BYTES) : null;
    },
    continues: (trace) => (isParentBased ? isSampled(trace) : foldOf(partsOf(trace).trace) < bound),
  };
}

export function newSpanId(): string {
  const at = take(SPAN_BYTES);
  return pool.toString('hex', at, at + SPAN_BYTES);
}

function foldOf(id: string): number {
  let folded = 0;
  for (let at = 0; at < id.length; at += 8) folded ^= Number.parseInt(id.slice(at, at + 8), 16);
  return folded >>> 0;
}

/** Random bytes: to ask for many at once costs hardly more than to ask for some. */
const pool = Buffer.alloc(8192);
let used = pool.length;

function take(bytes: number): number {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return used - bytes;
}
