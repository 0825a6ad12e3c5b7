/** How often a property is tried: so many times in each run of the tests, and MILLRACE_RUNS times as often where that is set. */
export function runCount(few: number): number {
  return few * Number(process.env['MILLRACE_RUNS'] ?? 1);
}
