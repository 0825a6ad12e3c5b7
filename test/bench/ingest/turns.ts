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
 * changes from second to second, and meets both alike when turns are shorter than that. Both begin as new processes: two that
 * run the same program differ by some percent for as long as they live, and only more of them tell less than that. The first turns of
 * each do not count.
 * @param events of each, in so many of a turn
 * @param make signs what is sent next
 */
export async function inTurns(
  pair: readonly [Contestant, Contestant],
  events: number,
  perTurn: number,
  make: (count: number) => Promise<unknown>,
): Promise<Turns> {
  const twoTurns = async (a: Side, b: Side): Promise<number> => {
    for (const order of [
      [a, b],
      [b, a],
    ]) {
      await make(perTurn);
      for (const { contestant, floods } of order) floods.push(await contestant.flood(perTurn));
    }
    return lastTwo(b) / lastTwo(a);
  };
  for (const { server } of pair) await server.renew?.();
  for (let sent = 0; sent < WARM_UP; sent += 2 * perTurn) await twoTurns(sideOf(pair[0]), sideOf(pair[1]));
  const [a, b] = [sideOf(pair[0]), sideOf(pair[1])];
  const rates: number[] = [];
  for (let sent = 0; sent < events; sent += 2 * perTurn) rates.push(await twoTurns(a, b));
  return { lap: allOf(a), beside: allOf(b), rates };
}

/** Events of each until its code is compiled. */
const WARM_UP = 20_000;

interface Side {
  readonly contestant: Contestant;
  readonly before: ReturnType<Contestant['cpu']>;
  readonly floods: Flood[];
}

function sideOf(contestant: Contestant): Side {
  return { contestant, before: contestant.cpu(), floods: [] };
}

function allOf({ contestant, floods, before }: Side): Lap {
  return lapOf(floods, before, contestant.cpu());
}

/** Milliseconds. */
function lastTwo({ floods }: Side): number {
  return floods.slice(-2).reduce((sum, { answered }) => sum + answered, 0);
}
