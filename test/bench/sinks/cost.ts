import { collectGarbage } from '../garbage.ts';
import { median, round } from '../report.ts';

/** Microseconds an event has taken: of time, and of CPU over all threads of this process. */
export interface Cost {
  readonly time: number;
  readonly cpu: number;
}

/** Median over pairs of rounds, and the range. */
export interface Share {
  readonly median: number;
  readonly range: readonly [least: number, most: number];
}

/** What it costs to send so many events, without what earlier rounds have left behind. */
export async function costOf(count: number, send: () => Promise<void>): Promise<Cost> {
  collectGarbage();
  const [started, used] = [performance.now(), process.cpuUsage()];
  await send();
  const time = (performance.now() - started) * 1000;
  const { user, system } = process.cpuUsage(used);
  return { time: time / count, cpu: (user + system) / count };
}

/** How many times as much the bare SDK takes as we do, round by round: above 1 we take less. */
export function shareOf(bare: readonly Cost[], ours: readonly Cost[], of: keyof Cost): Share {
  const shares = ours.map((cost, at) => (bare[at]?.[of] ?? Number.NaN) / cost[of]).toSorted((a, b) => a - b);
  const [least = Number.NaN, most = Number.NaN] = [shares[0], shares.at(-1)];
  return { median: round(median(shares), 2), range: [round(least, 2), round(most, 2)] };
}

export function rateOf(costs: readonly Cost[]): number {
  return round(median(costs.map(({ time }) => 1e6 / time)));
}

/** Such as `1.42 (1.38 to 1.50)`. */
export function written({ median: middle, range: [least, most] }: Share): string {
  return `${middle} (${least} to ${most})`;
}
