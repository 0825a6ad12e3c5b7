import { expect, test } from 'vitest';
import { Deadlines } from '../../src/receive/deadlines.ts';

interface Thing {
  readonly name: string;
}

/** Time that passes when the test says so, and how many timers wait. */
class StepClock {
  time = 1000;
  readonly #timers = new Map<() => void, number>();

  monotonic = (): number => this.time;

  after = (ms: number, callback: () => void): (() => void) => {
    this.#timers.set(callback, this.time + ms);
    return () => this.#timers.delete(callback);
  };

  get timers(): number {
    return this.#timers.size;
  }

  to(time: number): void {
    this.time = time;
    for (const [callback, due] of this.#timers) {
      if (due > time) continue;
      this.#timers.delete(callback);
      callback();
    }
  }
}

function make() {
  const clock = new StepClock();
  const due: string[] = [];
  const deadlines = new Deadlines<Thing>(clock, 100, ({ name }) => due.push(`${name} at ${clock.time}`));
  const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ name })) as [Thing, Thing, Thing];
  return { clock, due, deadlines, a, b, c };
}

test('each is told of once, when it is due, and one timer is enough', () => {
  const { clock, due, deadlines, a, b, c } = make();
  deadlines.add(a, 1000);
  deadlines.add(b, 1000);
  deadlines.add(c, 1050);
  expect(clock.timers).toBe(1);
  clock.to(1099);
  expect(due).toEqual([]);
  clock.to(1100);
  clock.to(1149);
  clock.to(1200);
  expect(due).toEqual(['a at 1100', 'b at 1100', 'c at 1200']);
  expect(clock.timers).toBe(0);
});

test('what is removed is not told of, whichever it is; the others are, in time', () => {
  for (const removed of ['a', 'b', 'c'] as const) {
    const { clock, due, deadlines, ...things } = make();
    for (const [name, from] of [
      ['a', 1000],
      ['b', 1010],
      ['c', 1020],
    ] as const)
      deadlines.add(things[name], from);
    deadlines.remove(things[removed]);
    deadlines.remove(things[removed]);
    for (const time of [1100, 1110, 1120]) clock.to(time);
    const left = ['a at 1100', 'b at 1110', 'c at 1120'].filter((text) => !text.startsWith(removed));
    expect(due).toEqual(left);
    expect(clock.timers).toBe(0);
  }
});

test('without anything that could be due there is no timer', () => {
  const { clock, deadlines, a } = make();
  deadlines.add(a, 1000);
  deadlines.remove(a);
  expect(clock.timers).toBe(0);
  deadlines.add(a, 1000);
  expect(clock.timers).toBe(1);
});
