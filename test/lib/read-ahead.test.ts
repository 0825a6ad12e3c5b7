import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readAhead } from '../../src/lib/read-ahead.ts';

interface Source {
  readonly name: number;
  /** Weights of its items. */
  readonly items: readonly number[];
  readonly fails: boolean;
  readonly isEarly: boolean;
  /** Turns of the event loop before each item. */
  readonly slow: number;
}

const HEAVIEST = 5;

const source = fc.record({
  items: fc.array(fc.integer({ min: 0, max: HEAVIEST }), { maxLength: 8 }),
  fails: fc.boolean(),
  isEarly: fc.boolean(),
  slow: fc.integer({ min: 0, max: 3 }),
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Reads sources as the program would, and watches what is open and what waits. */
class Watched {
  readonly #most: number;
  readonly opened: number[] = [];
  readonly closed: number[] = [];
  /** Weight that was read of each and not taken. */
  readonly #waiting = new Map<number, number>();
  mostOpen = 0;
  mostWaiting = 0;

  constructor(most: number) {
    this.#most = most;
  }

  async *open({ name, items, fails, slow }: Source): AsyncGenerator<readonly [number, number]> {
    this.opened.push(name);
    try {
      for (const [at, weight] of items.entries()) {
        for (let turns = 0; turns < slow; turns += 1) await turn();
        this.#weigh(name, weight);
        yield [at, weight];
      }
      if (fails) throw new Error(`source ${name}`);
    } finally {
      this.closed.push(name);
    }
  }

  taken(name: number, weight: number): void {
    this.#waiting.set(name, (this.#waiting.get(name) ?? 0) - weight);
  }

  #weigh(name: number, weight: number): void {
    const waiting = this.#waiting.get(name) ?? 0;
    // What waits before an item is read.
    this.mostWaiting = Math.max(this.mostWaiting, waiting - this.#most);
    this.#waiting.set(name, waiting + weight);
    this.mostOpen = Math.max(this.mostOpen, this.opened.length - this.closed.length);
  }
}

/** What a plain loop over the sources would see, until the first one fails or so many items were taken. */
function plainly(sources: readonly Source[], atMost: number): string[] {
  const seen: string[] = [];
  for (const { name, items, fails } of sources) {
    for (const at of items.keys()) {
      seen.push(`${name}:${at}`);
      if (seen.length === atMost) return seen;
    }
    if (fails) return [...seen, `failed: source ${name}`];
  }
  return seen;
}

test('whatever is read ahead, the items come as from a plain loop, bounded, and everything is closed', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(source, { maxLength: 7 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 40 }),
      async (list, width, most, atMost) => {
        const sources = list.map((one, name): Source => ({ ...one, name }));
        const watched = new Watched(most);
        const ahead = readAhead(inTurn(sources), {
          width,
          most,
          open: (one) => watched.open(one),
          isEarly: ({ isEarly }) => isEarly,
          weightOf: ([, weight]) => weight,
        });
        const seen: string[] = [];
        const early: Source[] = [];
        const take = async (): Promise<void> => {
          for await (const [{ name }, items] of ahead) {
            const waits = (one: Source): boolean => !one.isEarly && one.name > name;
            early.push(...sources.filter((one) => waits(one) && watched.opened.includes(one.name)));
            for await (const [at, weight] of items) {
              watched.taken(name, weight);
              seen.push(`${name}:${at}`);
              if (seen.length === atMost) return;
              if (at % 3 === 0) await turn();
            }
          }
        };
        await take().catch((error: Error) => seen.push(`failed: ${error.message}`));
        expect(seen).toEqual(plainly(sources, atMost));
        expect(early).toEqual([]);
        expect(watched.mostOpen).toBeLessThanOrEqual(width);
        // The item in the consumer's hand waits no longer, and is not taken yet.
        expect(watched.mostWaiting).toBeLessThan(HEAVIEST);
        expect(new Set(watched.closed)).toEqual(new Set(watched.opened));
      },
    ),
    { numRuns: 300 },
  );
});

async function* inTurn<T>(items: readonly T[]): AsyncGenerator<T> {
  await turn();
  yield* items;
}

test('the next sources are read while the first one is taken slowly', async () => {
  const sources = [0, 1, 2, 3].map((name): Source => {
    return { name, items: [1, 1], fails: false, isEarly: true, slow: 0 };
  });
  const watched = new Watched(10);
  const ahead = readAhead(inTurn(sources), {
    width: 3,
    most: 10,
    open: (one) => watched.open(one),
    isEarly: () => true,
    weightOf: () => 1,
  });
  await ahead.next();
  while (watched.closed.length < 3) await turn();
  expect(watched.opened).toEqual([0, 1, 2]);
  await ahead.return(undefined);
});
