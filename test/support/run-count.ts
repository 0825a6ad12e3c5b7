/** Set by `npm run test:long`. */
const isLong = process.env['MILLRACE_LONG'] !== undefined;

/**
 * How often something is tried: few times in the quick lane, many times in the long one. A test of the long lane only has no
 * number for the quick one. MILLRACE_RUNS multiplies both, by hand.
 */
export function runCount({ quick, long }: { readonly quick?: number; readonly long: number }): number {
  const runs = isLong ? long : (quick ?? long);
  return Math.ceil(runs * Number(process.env['MILLRACE_RUNS'] ?? 1));
}

/** What seeded tests begin with: the same each time, or MILLRACE_SEED. */
export const SEED = Number(process.env['MILLRACE_SEED'] ?? 1);
