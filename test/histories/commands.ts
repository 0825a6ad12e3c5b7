import fc from 'fast-check';
import { MillraceError } from '../../src/core/errors.ts';
import type { Event } from '../../src/core/event.ts';
import { makeEvent } from '../support/events.ts';
import { type Defects, Process, RETENTION } from './process.ts';
import { anySettings, type Settings, SINKS, TYPES, withSinks } from './settings.ts';
import type { World } from './world.ts';

/** What the model knows. */
export interface Model {
  /** In force. */
  settings: Settings;
}

/** The receiver under test, and the world around it. */
export interface Real {
  readonly world: World;
  readonly defects: Defects;
  process: Process;
  count: number;
}

type Step = fc.AsyncCommand<Model, Real>;

/** Turns of the event loop in which the receiver gets on with its work, and time goes by. */
export async function settle({ world }: Real, turns = 12): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    if (turn % 3 === 2) world.clock.next();
  }
}

function command(text: string, run: (model: Model, real: Real) => Promise<void>): Step {
  return {
    check: () => true,
    run: async (model, real) => {
      await run(model, real);
      await settle(real);
    },
    toString: () => text,
  };
}

/** @returns what was accepted, acknowledged by now */
async function accept(real: Real, count: number, type: string): Promise<readonly Event[]> {
  const events = Array.from({ length: count }, () => {
    real.count += 1;
    return makeEvent({ id: `e${real.count}`, type: `${type}x`, user: `u${real.count % 3}` });
  });
  await Promise.all(events.map((event) => real.process.accept(event)));
  return events;
}

function note({ world }: Real, events: readonly Event[], settings: readonly Settings[]): void {
  for (const { id, type } of events) world.accepted(id, type, settings);
}

/** The sinks a refusal names; rethrows anything else. */
function refusedFor(error: unknown): string[] {
  if (!(error instanceof MillraceError) || error.code !== 'sink_waited_for') throw error;
  return [...error.detail.matchAll(/^sinks\.(\w+): \d+ events/gm)].map(([, name]) => name ?? '');
}

/** What was owed to the old name is owed to the new one when the change is taken. */
function take(model: Model, { world }: Real, settings: Settings): void {
  const { continues } = settings;
  if (continues !== null) world.succeeded(continues.old, continues.heir);
  model.settings = settings;
}

/** Starts by these settings; where that is refused the operator retries, or drops, the sinks that are waited for. */
export async function start(model: Model, real: Real, wanted: Settings, drops = false): Promise<void> {
  const { world, defects } = real;
  try {
    real.process = await Process.start(world, wanted, defects);
    take(model, real, wanted);
  } catch (error) {
    const names = refusedFor(error);
    if (drops) for (const name of names) await Process.drop(world, name);
    await start(model, real, drops ? { ...wanted, continues: null } : withSinks(wanted, names), false);
  }
}

/** False when it is refused, or `fails` because one more sink cannot be opened. */
async function reload(real: Real, settings: Settings, fails = false): Promise<boolean> {
  const before = await real.process.places();
  try {
    await real.process.reload(settings, fails);
    return true;
  } catch (error) {
    const isWrong = fails && error instanceof MillraceError && error.code === 'config_invalid';
    if (!isWrong) refusedFor(error);
    // A place of a sink that is not open would hold back all events for ever.
    const added = [...(await real.process.places())].filter((name) => !before.has(name));
    if (added.length > 0)
      throw new Error(`a failed reload left places for ${added.join(', ')}`, { cause: error });
    return false;
  }
}

const anySink = fc.constantFrom(...SINKS);
const anyType = fc.constantFrom(...TYPES);
const anyLuck = fc.nat(3).map((n) => n === 3);
const aFew = fc.integer({ min: 1, max: 6 });

/** All that happens to a receiver between its first start and its last. */
export const anyCommands: readonly fc.Arbitrary<Step>[] = [
  fc.tuple(aFew, anyType).map(([count, type]) =>
    command(`accept ${count} ${type}`, async (model, real) => {
      note(real, await accept(real, count, type), [model.settings]);
    }),
  ),
  anySink.map((name) => command(`block ${name}`, async (_, { world }) => world.block(name))),
  anySink.map((name) => command(`unblock ${name}`, async (_, { world }) => world.unblock(name))),
  fc.tuple(anySettings, anyLuck).map(([settings, fails]) =>
    command(`reload ${show(settings)}${fails ? ', which fails' : ''}`, async (model, real) => {
      if (await reload(real, settings, fails)) take(model, real, settings);
    }),
  ),
  fc.tuple(anySettings, aFew, anyType, anyLuck).map(([settings, count, type, fails]) =>
    command(
      `accept ${count} ${type} while reload ${show(settings)}${fails ? ', which fails' : ''}`,
      async (model, real) => {
        const before = model.settings;
        const progress = { over: false };
        const taking = reload(real, settings, fails).finally(() => (progress.over = true));
        const events: Event[] = [];
        // One in each turn, so that some come between any two steps of the reload.
        while (!progress.over || events.length < count) events.push(...(await accept(real, 1, type)));
        const isTaken = await taking;
        note(real, events, isTaken ? [before, settings] : [before]);
        if (isTaken) take(model, real, settings);
      },
    ),
  ),
  fc.constant(
    command('retry dead letters', async ({ settings }, real) => real.process.retryLetters(settings.sinks)),
  ),
  fc
    .tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.option(anySettings))
    .map(([kill, drops, retryLetters, settings]) =>
      command(
        `${kill ? 'kill' : 'stop'}, ${retryLetters ? 'retry dead letters, ' : ''}start ${settings === null ? 'again' : show(settings)}`,
        async (model, real) => {
          if (kill) real.process.kill();
          else await real.process.stop();
          if (retryLetters) await Process.retryLetters(real.world, (settings ?? model.settings).sinks);
          await start(model, real, settings ?? model.settings, drops);
        },
      ),
    ),
  fc.tuple(anySink, anySettings).map(([name, { sinks, routes }]) =>
    command(`drop ${name}`, async (model, real) => {
      const without = {
        sinks: sinks.filter((sink) => sink !== name),
        routes: routes.map(({ type, to }) => ({ type, to: to.filter((sink) => sink !== name) })),
        continues: null,
      };
      if (!model.settings.sinks.includes(name) || without.sinks.length === 0) return;
      await real.process.giveUp(name);
      if (await reload(real, without)) take(model, real, without);
    }),
  ),
  fc.constant(
    command('retain', async (_, { world }) => {
      const end = world.clock.monotonic() + 3 * RETENTION;
      while (world.clock.monotonic() < end) {
        world.clock.next();
        await new Promise((resolve) => setImmediate(resolve));
      }
    }),
  ),
];

function show({ sinks, routes, continues }: Settings): string {
  const to = routes.map((route) => `${route.type}>${route.to.join('+')}`).join(' ');
  return `${sinks.join('')} ${to}${continues === null ? '' : ` ${continues.heir} continues ${continues.old}`}`;
}
