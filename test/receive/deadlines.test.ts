import { expect, test } from 'vitest';
import { Deadlines, type Due } from '../../src/receive/deadlines.ts';
import { ManualClock } from '../support/manual-clock.ts';

class Thing implements Due {
  readonly name: string;
  due = 0;
  sooner: this | null = null;
  later: this | null = null;

  constructor(name: string) {
    this.name = name;
  }
}

function make() {
  const clock = new ManualClock();
  clock.leap(1000);
  const due: string[] = [];
  const deadlines = new Deadlines<Thing>(clock, 100, ({ name }) =>
    due.push(`${name} at ${clock.monotonic()}`),
  );
  const [a, b, c] = ['a', 'b', 'c'].map((name) => new Thing(name)) as [Thing, Thing, Thing];
  return { clock, due, deadlines, a, b, c };
}

test('each is reported once, when it is due, and one timer is enough', () => {
  const { clock, due, deadlines, a, b, c } = make();
  deadlines.add(a, 1000);
  deadlines.add(b, 1000);
  deadlines.add(c, 1050);
  expect(clock.pending).toBe(1);
  clock.leap(99);
  expect(due).toEqual([]);
  clock.leap(1);
  clock.leap(49);
  clock.leap(51);
  expect(due).toEqual(['a at 1100', 'b at 1100', 'c at 1200']);
  expect(clock.pending).toBe(0);
});

test('any item that is removed is not reported; the others are, in time', () => {
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
    expect([things[removed].sooner, things[removed].later]).toEqual([null, null]);
    for (const ms of [100, 10, 10]) clock.leap(ms);
    const left = ['a at 1100', 'b at 1110', 'c at 1120'].filter((text) => !text.startsWith(removed));
    expect(due).toEqual(left);
    expect(clock.pending).toBe(0);
  }
});

test('without anything that could be due there is no timer', () => {
  const { clock, deadlines, a } = make();
  deadlines.add(a, 1000);
  deadlines.remove(a);
  expect(clock.pending).toBe(0);
  deadlines.add(a, 1000);
  expect(clock.pending).toBe(1);
});
