import type { BenchContext } from './bench.ts';

interface Rounds<T> {
  readonly rounds: number;
  /** Rounds before them, which do not count; none when left out. */
  readonly warmUp?: number;
  /** Before the first of a round. */
  readonly begin?: () => Promise<unknown>;
  /** After the last of a round; those of the warm-up are 0 or less. @returns more to print */
  readonly end?: (round: number) => Promise<readonly string[]>;
  /** The text printed for one. */
  readonly tell: (measured: T) => string;
}

/**
 * Measures all contenders in each round, each of them first in its turn: what else the machine does meets them all.
 * @returns what each has shown, by round
 */
export async function inTurns<Name extends string, T>(
  contenders: Readonly<Record<Name, (round: number) => Promise<T>>>,
  { rounds, warmUp = 0, begin, end, tell }: Rounds<T>,
  { note, signal }: Pick<BenchContext, 'note' | 'signal'>,
): Promise<Record<Name, T[]>> {
  const names = Object.keys(contenders) as Name[];
  const all = Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<Name, T[]>;
  for (let at = 1 - warmUp; at <= rounds; at += 1) {
    await begin?.();
    const first = (at - 1 + warmUp) % names.length;
    const texts: string[] = [];
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      signal.throwIfAborted();
      const measured = await contenders[name](at);
      if (at > 0) all[name].push(measured);
      texts.push(`${name} ${tell(measured)}`);
    }
    texts.push(...((await end?.(at)) ?? []));
    note(`${at > 0 ? `round ${at}` : 'warm-up'}: ${texts.sort().join(', ')}`);
  }
  return all;
}

/** How many times as much one has of something as the other, round by round. */
export function ratios<T>(one: readonly T[], other: readonly T[], of: (measured: T) => number): number[] {
  return one.map((measured, at) => {
    const beside = other[at];
    return beside === undefined ? Number.NaN : of(measured) / of(beside);
  });
}
