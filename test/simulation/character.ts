import { Random } from '../support/random.ts';

/** What happens to a receiver. */
export type Act =
  | 'kill'
  | 'power cut'
  | 'stop'
  | 'reload'
  | 'time'
  | 'disk'
  | 'slow'
  | 'erase'
  | 'give up'
  | 'retry'
  | 'start with another config'
  | 'broker';

/** How often one comes among the others. */
const CHANCES: Readonly<Record<Act, number>> = {
  kill: 2,
  'power cut': 1,
  stop: 1,
  reload: 3,
  time: 1,
  disk: 2,
  slow: 1,
  erase: 1,
  'give up': 1,
  retry: 1,
  'start with another config': 1,
  broker: 1,
};

/** Acts that find something only together. */
const THEMES: readonly (readonly Act[])[] = [
  ['reload', 'start with another config', 'give up', 'retry', 'disk'],
  ['reload', 'give up', 'slow', 'disk', 'stop'],
  ['kill', 'power cut', 'stop', 'slow', 'disk'],
  ['kill', 'power cut', 'time'],
  ['erase', 'kill', 'power cut', 'reload', 'slow'],
  ['broker', 'retry', 'reload', 'kill'],
];

/** Steps of most histories, at most, and of one in ten. */
const SHORT = 5;
const LONG = 12;

/**
 * What a history is like. Each has only some of all that can happen, and events at a pace of its own: what seldom comes together
 * does so in some, and a short one shows in a tenth of the time what a long one would.
 */
export interface Character {
  /** Steps of the operator. */
  readonly length: number;
  /** Each as often as it is to come. */
  readonly acts: readonly Act[];
  /** Milliseconds between two events of a sender, at most. */
  readonly pause: number;
  /** Chance that something that begins is killed in the middle. */
  readonly killed: number;
  /** Whether the archive is sealed. */
  readonly isSealed: boolean;
}

/** Decided by the seed apart from all that happens: a history with fewer steps is otherwise the same. */
export function characterOf(seed: number): Character {
  const random = new Random(Math.imul(seed, 0x9e3779b1));
  const all = Object.keys(CHANCES) as Act[];
  const share = random.pick([0.3, 0.5, 1]);
  const some = random.chance(0.6) ? random.pick(THEMES) : all.filter(() => random.chance(share));
  const acts = (some.length > 0 ? some : all).flatMap((act) => Array<Act>(CHANCES[act]).fill(act));
  const isLong = random.chance(0.1);
  return {
    length: isLong ? LONG : 1 + random.below(SHORT),
    acts,
    // Many events in a long one would be most of the work of all histories.
    pause: random.pick(isLong ? [1500, 5000] : [500, 1500, 5000]),
    killed: random.pick([0, 0.1, 0.3]),
    isSealed: random.chance(0.2),
  };
}
