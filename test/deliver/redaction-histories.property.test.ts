import fc from 'fast-check';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import type { Route } from '../../src/core/route.ts';
import type { DeliveryPlan } from '../../src/deliver/plan-runner.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { DEFAULT_FIELDS } from '../../src/receive/validate/envelope.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { roomyJournal } from '../support/inline-journal.ts';
import { runCount } from '../support/run-count.ts';
import { until } from '../support/until.ts';
import {
  type Mode,
  type Name,
  type Routing,
  SECRETS,
  SINKS,
  type Type,
  TYPES,
  World,
} from './redaction-world.ts';
import { delivering, planned } from './running.ts';

type Step =
  | { readonly do: 'post'; readonly type: Type }
  | { readonly do: 'reload' | 'restart'; readonly to: Routing }
  | { readonly do: 'mode'; readonly sink: Name; readonly mode: Mode }
  | { readonly do: 'retry' };

const leaving = fc.constantFrom(null, [], ['x'], ['y'], ['x', 'y']);
const toSinks = fc.record({ one: leaving, two: leaving });
const routings: fc.Arbitrary<Routing> = fc.record({ 'a.': toSinks, 'b.': toSinks });
const modes = fc.constantFrom<Mode>('takes', 'holds', 'down', 'refuses');
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('post' as const), type: fc.constantFrom(...TYPES) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('reload' as const, 'restart' as const), to: routings }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('mode' as const), sink: fc.constantFrom(...SINKS), mode: modes }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('retry' as const) }) },
);

/** Each takes a journal on disk, some of them several times. */
const RUNS = runCount({ quick: 10, long: 200 });

const routesOf = (routing: Routing): readonly Route[] =>
  TYPES.map((type) => ({
    match: [type],
    to: SINKS.flatMap((sink) => {
      const names = routing[type][sink];
      if (names === null) return [];
      const redactions = [{ redact: names.map((name) => `/data/${name}`), fields: DEFAULT_FIELDS }];
      return [{ sink, destination: null, ...(names.length === 0 ? {} : { redactions }) }];
    }),
  }));

function planOf(world: World, routing: Routing): DeliveryPlan {
  const sinks = SINKS.map((name) => {
    const fingerprint = JSON.stringify(TYPES.map((type) => routing[type][name]));
    const redacting = /[xy]/.test(fingerprint) ? fingerprint : null;
    return [name, planned(() => world.sinkNamed(name), { fingerprint, redacting })] as const;
  });
  return { sinks: new Map(sinks), config: { routes: routesOf(routing) } };
}

async function start(world: World, path: string, routing: Routing) {
  const journal = await SqliteJournal.open(roomyJournal(path, systemClock));
  const running = delivering(journal, systemClock, planOf(world, routing), {
    retry: { initial: 1, max: 2, giveUpAfter: 0 },
  });
  await running.delivery.start();
  return { journal, ...running };
}

/** @param prepared called before the new plan is in force */
async function reloadTo(
  next: DeliveryPlan,
  { delivery, plan }: Awaited<ReturnType<typeof start>>,
  prepared: () => void,
): Promise<void> {
  const never = new AbortController().signal;
  await delivery.prepare(next, never);
  prepared();
  await plan.replace(next);
  await delivery.part(never);
}

async function play(routing: Routing, steps: readonly Step[]): Promise<World> {
  const world = new World();
  const path = join(await temporaryFolder(), 'journal');
  world.routings.push(routing);
  let running = await start(world, path, routing);
  const never = new AbortController().signal;
  const newest = (): number => world.routings.length - 1;
  const inForce = (): void => {
    for (const name of SINKS) world.first[name] = world.firstForRetried[name] = newest();
  };
  /** Answers held calls once the change waits for them: by then nothing else may be sent by the earlier routes. */
  const changed = async (change: Promise<unknown>): Promise<void> => {
    let isOver = false;
    const over = change.finally(() => (isOver = true));
    const held = SINKS.filter((each) => world.modeOf(each) === 'holds');
    const letGo = async (name: Name): Promise<void> => {
      const modeOf = (): string | undefined =>
        running.delivery.dispatcher.status().find(({ sink }) => sink === name)?.mode;
      await until(
        'the end of the old feed',
        () => isOver || modeOf() === 'draining' || modeOf() === 'stopped',
      );
      world.first[name] = newest();
      world.turn(name, 'takes');
    };
    // Side by side: one that the change leaves alone drains never, and the other may be waited for.
    await Promise.all(held.map(letGo));
    await over;
    inForce();
  };
  const steppedTo = async (each: Step): Promise<void> => {
    if (each.do === 'mode') world.turn(each.sink, each.mode);
    else if (each.do === 'post') {
      const id = `event${world.posted.size}-`;
      world.posted.set(id, { type: each.type, under: world.routings.length - 1 });
      const data = Object.fromEntries(SECRETS.map((name) => [name, `${name}-${id}`]));
      const body = Buffer.from(JSON.stringify({ event_type: each.type, data }));
      await running.journal.accept(makeEvent({ id, type: each.type, body }));
    } else if (each.do === 'retry') await running.journal.retryDeadLetters({});
    else if (each.do === 'reload') {
      world.routings.push(each.to);
      const next = planOf(world, each.to);
      await changed(reloadTo(next, running, inForce));
    } else {
      await changed(running.delivery.stop(never));
      await running.journal.close();
      world.routings.push(each.to);
      inForce();
      running = await start(world, path, each.to);
    }
  };
  for (const each of steps) await steppedTo(each);
  for (const name of SINKS) world.turn(name, 'takes');
  await until('all to be delivered', async () => {
    await running.journal.retryDeadLetters({});
    await Promise.all(SINKS.map((name) => running.delivery.dispatcher.passed(name)));
    return (await running.journal.status()).deadLetters === 0;
  });
  await running.delivery.stop(never);
  await running.journal.close();
  return world;
}

/** A reload that one sink waits for, which the other has no part in and holds as well. */
const HELD_BOTH: [Routing, Step[]] = [
  { 'a.': { one: [], two: [] }, 'b.': { one: null, two: null } },
  [
    { do: 'mode', sink: 'one', mode: 'holds' },
    { do: 'mode', sink: 'two', mode: 'holds' },
    { do: 'post', type: 'a.' },
    { do: 'reload', to: { 'a.': { one: [], two: ['x'] }, 'b.': { one: null, two: null } } },
  ],
];

/** What was retried and waits behind another of its user leaves by the routes under which the feed had read it. */
const RETRIED_BEHIND: [Routing, Step[]] = [
  { 'a.': { one: ['y'], two: null }, 'b.': { one: ['x'], two: null } },
  [
    { do: 'mode', sink: 'one', mode: 'refuses' },
    { do: 'post', type: 'a.' },
    { do: 'post', type: 'a.' },
    { do: 'retry' },
    { do: 'mode', sink: 'one', mode: 'holds' },
    { do: 'retry' },
    { do: 'reload', to: { 'a.': { one: null, two: null }, 'b.': { one: null, two: null } } },
  ],
];

test('over reloads, restarts, holds, failures and retries nothing leaves with less cut out than the routes say, and all arrives', async () => {
  await fc.assert(
    fc.asyncProperty(routings, fc.array(step, { minLength: 4, maxLength: 14 }), async (first, steps) => {
      const world = await play(first, steps);
      expect(world.wrong).toEqual([]);
      for (const [id, { type, under }] of world.posted)
        for (const sink of SINKS)
          expect([id, sink, world.had[sink].has(id)]).toEqual([
            id,
            sink,
            world.routings[under]![type][sink] !== null,
          ]);
    }),
    // A failure shows its history, and not a timeout.
    {
      numRuns: RUNS,
      examples: [HELD_BOTH, RETRIED_BEHIND],
      interruptAfterTimeLimit: 480_000,
      markInterruptAsFailure: true,
    },
  );
});
