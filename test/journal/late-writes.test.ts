import { expect, test } from 'vitest';
import { LateWrites } from '../../src/journal/late-writes.ts';
import type { PassedOver } from '../../src/journal/erased-alone.ts';
import type { Store } from '../../src/journal/store.ts';
import type { Remote } from '../../src/lib/remote.ts';
import { ManualClock } from '../deliver/support.ts';

type Moves = readonly (readonly [sink: string, seq: number])[];

interface Asked {
  readonly moves?: Moves;
  readonly erased?: readonly number[];
  readonly passedOver?: readonly PassedOver[];
}

/** What the writer thread is asked for, answered when the test says so. */
function build() {
  const asked: (Asked & { answer: PromiseWithResolvers<void> })[] = [];
  const ask = (what: Asked): Promise<void> => {
    const answer = Promise.withResolvers<void>();
    asked.push({ ...what, answer });
    return answer.promise;
  };
  const store = {
    cursors: { move: (moves: Moves) => ask({ moves: [...moves] }) },
    noteErased: (erased: readonly number[], passedOver: readonly PassedOver[]) => ask({ erased, passedOver }),
  } as unknown as Remote<Store>;
  const clock = new ManualClock();
  return { asked, clock, late: new LateWrites(store, clock) };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('moves of a moment are written together, the newest of each sink', async () => {
  const { asked, clock, late } = build();
  late.move('a', 1);
  late.move('b', 7);
  late.move('a', 2);
  expect(asked).toEqual([]);
  expect(clock.next()).toBe(true);
  expect(asked).toMatchObject([
    {
      moves: [
        ['a', 2],
        ['b', 7],
      ],
    },
  ]);
  asked[0]?.answer.resolve();
  await turn();
  await late.flush();
  expect(asked).toHaveLength(1);
  expect(clock.next()).toBe(false);
});

test('a move that comes while one is being written is written too', async () => {
  const { asked, late } = build();
  late.move('a', 1);
  const flushed = late.flush();
  late.move('a', 2);
  asked[0]?.answer.resolve();
  await flushed;
  void late.flush();
  await turn();
  expect(asked.map(({ moves }) => moves)).toEqual([[['a', 1]], [['a', 2]]]);
});

test('what could not be written is tried again by itself, until it is written', async () => {
  const { asked, clock, late } = build();
  late.move('a', 5);
  for (let round = 1; round <= 3; round += 1) {
    expect(clock.next()).toBe(true);
    expect(asked).toHaveLength(round);
    asked.at(-1)?.answer.reject(new Error('full'));
    await turn();
  }
  clock.next();
  expect(asked.at(-1)?.moves).toEqual([['a', 5]]);
  asked.at(-1)?.answer.resolve();
  await turn();
  expect(clock.next()).toBe(false);
});

test('events of erased users are counted once, also when the first try fails', async () => {
  const { asked, late } = build();
  late.countErased(10);
  const failed = late.flush();
  late.countErased(20);
  asked[0]?.answer.reject(new Error('full'));
  await expect(failed).rejects.toThrow('full');
  const flushed = late.flush();
  asked[1]?.answer.resolve();
  await flushed;
  await late.flush();
  expect(asked.map(({ erased }) => erased?.toSorted())).toEqual([[10], [10, 20]]);
});

test('what is passed over is written before a cursor moves past it, also when the first try fails', async () => {
  const { asked, late } = build();
  late.passedOver(['a', 1, 10]);
  late.move('a', 1);
  const failed = late.flush();
  late.passedOver(['a', 2, 20]);
  late.move('a', 2);
  asked[0]?.answer.reject(new Error('full'));
  await expect(failed).rejects.toThrow('full');
  const flushed = late.flush();
  late.passedOver(['a', 3, 30]);
  late.move('a', 3);
  asked[1]?.answer.resolve();
  await turn();
  asked[2]?.answer.resolve();
  await flushed;
  const [, second, third] = asked;
  expect(second?.passedOver?.map(([, seq]) => seq).toSorted()).toEqual([1, 2]);
  expect(third?.moves).toEqual([['a', 2]]);
});

test('stopped, it writes when asked and never by itself', async () => {
  const { asked, clock, late } = build();
  late.move('a', 1);
  late.stop();
  late.move('a', 2);
  expect(clock.next()).toBe(false);
  const flushed = late.flush();
  asked[0]?.answer.resolve();
  await flushed;
  expect(asked.map(({ moves }) => moves)).toEqual([[['a', 2]]]);
});
