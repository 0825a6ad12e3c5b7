import type { ResolvedConfig } from '../config/config.ts';
import { MillraceError } from '../core/errors.ts';
import { flushSinks } from '../deliver/flush.ts';
import { Cell } from '../lib/live.ts';
import { Parts } from '../lib/parts.ts';
import { type Delivering, openSinks } from './delivery.ts';
import { startStore } from './parts.ts';
import type { Kept } from './store.ts';
import { type AppOptions, type Base, foundation } from './system.ts';
import { makePlan } from './plan.ts';

/** What a journal has still to give. */
export interface Left {
  /** Events that wait for a sink, by its name; sinks for which none wait are left out. */
  readonly waiting: Readonly<Record<string, number>>;
  /** Deliveries confirmed since the start, by sink. */
  readonly delivered: Readonly<Record<string, number>>;
  /** Why a sink does not take what waits for it, by its name. */
  readonly errors: Readonly<Record<string, string>>;
  readonly deadLetters: number;
  readonly quarantined: number;
}

/** A journal on its way to its sinks, into which nothing comes. */
export interface Draining {
  look(): Promise<Left>;
  /** Flushes what it can until `signal` aborts, and lets the journal go. */
  stop(signal: AbortSignal): Promise<void>;
}

/**
 * Delivers what a journal holds to the sinks of a config, by the routes its events were accepted under.
 * @param path of the journal, in place of the config's
 * @throws MillraceError journal_missing, journal_in_use, sink_waited_for, or what keeps a sink from being made
 */
export async function startDraining(
  { config, ...rest }: ResolvedConfig,
  path: string,
  options: Pick<AppOptions, 'log' | 'onFailure'>,
): Promise<Draining> {
  if (config.journal.type === 'kafka')
    throw new MillraceError(
      'usage',
      'with journal.type: kafka nothing waits on a disk: whatever a deliverer leaves, the others deliver',
    );
  const journal = { ...config.journal, path };
  const drained = { ...rest, config: { ...config, journal, acknowledge: 'journaled' } } as const;
  const plan = new Cell(await makePlan(drained));
  const base = foundation(plan, { ...options, existing: true });
  const { log } = options;
  const parts = new Parts((error, part) => log.error({ err: error, part }, 'could not stop cleanly'));
  // Of all that runs, what delivers: no listener, no source, no erasure that falls due.
  const { kept, delivering } = await startStore(base, parts);
  await parts.start('sinks', () => openSinks(delivering, kept));
  return { look: () => look({ ...base, ...kept, ...delivering }), stop: parts.stop };
}

async function look(system: Base & Kept & Delivering): Promise<Left> {
  const { journal, dispatcher, store } = system;
  if (journal === null) throw new Error('a journal is what is drained');
  const sinks = dispatcher.status();
  // Files that sinks keep open would be closed by their age: nothing more comes into them now.
  const isHeld = sinks.some(({ held }) => held > 0);
  if (isHeld && sinks.every(({ pending }) => pending === 0)) await flushSinks(system, null);
  await store.flush();
  const { cursors, lastSeq, deadLetters, quarantined } = await journal.status();
  const waiting = cursors.flatMap(({ sink, backlog }) => {
    const { waiting: own = 0, lookedAt = 0 } = sinks.find((each) => each.sink === sink) ?? {};
    return backlog === 0 ? [] : [[sink, Math.min(backlog, own + Math.max(0, lastSeq - lookedAt))] as const];
  });
  return {
    waiting: Object.fromEntries(waiting),
    // Counted now: more was delivered since, when the journal says that nothing waits.
    delivered: Object.fromEntries(dispatcher.status().map(({ sink, delivered }) => [sink, delivered])),
    errors: Object.fromEntries(
      sinks.flatMap(({ sink, lastError }) => (lastError === null ? [] : [[sink, lastError]])),
    ),
    deadLetters,
    quarantined,
  };
}
