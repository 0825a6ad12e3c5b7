import { type Contestant, type Flood, type Lap, lapOf } from './contestant.ts';

/** A round of two servers that took turns: of each all of its turns as one, and its rate as a multiple of the other's, turn by turn. */
export interface Turns {
  readonly lap: Lap;
  readonly beside: Lap;
  /** Of two turns each, A B B A. */
  readonly rates: readonly number[];
}

/**
 * Has two servers take turns, A B B A A B B A: both are sent the same events, some at a time. What else keeps the machine busy
 * changes from second to second, and meets both alike when turns are shorter than that.
 * @param events of each, in so many of a turn
 * @param make signs what is sent next
 */
export async function inTurns(
  pair: readonly [Contestant, Contestant],
  events: number,
  perTurn: number,
  make: (count: number) => Promise<unknown>,
): Promise<Turns> {
  const [a, b] = pair.map((contestant) => {
    return { contestant, before: contestant.cpu(), floods: [] as Flood[] };
  }) as [Side, Side];
  const rates: number[] = [];
  for (let sent = 0; sent < events; sent += 2 * perTurn) {
    for (const order of [
      [a, b],
      [b, a],
    ]) {
      await make(perTurn);
      for (const { contestant, floods } of order) floods.push(await contestant.flood(perTurn));
    }
    rates.push(lastTwo(b) / lastTwo(a));
  }
  const lap = ({ contestant, floods, before }: Side): Lap => lapOf(floods, before, contestant.cpu());
  return { lap: lap(a), beside: lap(b), rates };
}

interface Side {
  readonly contestant: Contestant;
  readonly before: ReturnType<Contestant['cpu']>;
  readonly floods: Flood[];
}

/** Milliseconds. */
function lastTwo({ floods }: Side): number {
  return floods.slice(-2).reduce((sum, { answered }) => sum + answered, 0);
}
