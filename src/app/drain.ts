import type { ResolvedConfig } from '../config/config.ts';
import { MillraceError } from '../core/errors.ts';
import { flushSinks } from '../deliver/flush.ts';
import { Cell } from '../lib/live.ts';
import { Parts } from '../lib/parts.ts';
import { type DeliveryParts, openSinks } from './delivery.ts';
import { startStore } from './parts.ts';
import type { StoreParts } from './store.ts';
import { type AppOptions, type Base, foundation } from './system.ts';
import { makePlan } from './plan.ts';

/** What is left in a journal that is drained. */
export interface Left {
  /** Events that wait, by sink, without sinks that none wait for. */
  readonly waiting: Readonly<Record<string, number>>;
  /** Deliveries confirmed since the start, by sink. */
  readonly delivered: Readonly<Record<string, number>>;
  /** Last error, by sink. */
  readonly errors: Readonly<Record<string, string>>;
  readonly deadLetters: number;
  readonly quarantined: number;
}

/**
 * Delivers the events of a journal to the sinks of a config, by the routes they were accepted under, and accepts nothing.
 * @param path of the journal, instead of `journal.path`
 * @throws MillraceError journal_missing, journal_in_use, sink_waited_for, or what keeps a sink from being made
 */
export async function startDraining(
  { config, ...rest }: ResolvedConfig,
  path: string,
  options: Pick<AppOptions, 'log' | 'onFailure'>,
) {
  if (config.journal.type === 'kafka')
    throw new MillraceError(
      'usage',
      'with journal.type: kafka nothing waits on a disk: the other processes deliver what one leaves',
    );
  const journal = { ...config.journal, path };
  const drained = { ...rest, config: { ...config, journal, acknowledge: 'journaled' } } as const;
  const plan = new Cell(await makePlan(drained));
  const base = foundation(plan, { ...options, existing: true });
  const { log } = options;
  const parts = new Parts((error, part) => log.error({ err: error, part }, 'could not stop cleanly'));
  // Without listeners, sources and due erasures.
  const { stored, delivering } = await startStore(base, parts);
  await parts.start('sinks', () => openSinks(delivering, stored));
  return {
    look: () => look({ ...base, ...stored, ...delivering }),
    /** Flushes until its signal aborts, and closes the journal. */
    stop: parts.stop,
  };
}

async function look(parts: Base & StoreParts & DeliveryParts): Promise<Left> {
  const { journal, dispatcher, store } = parts;
  if (journal === null) throw new Error('there is no journal to drain');
  const sinks = dispatcher.status();
  // Nothing more comes into open files: closes them before they reach their age.
  const isHeld = sinks.some(({ held }) => held > 0);
  if (isHeld && sinks.every(({ pending }) => pending === 0)) await flushSinks(parts, null);
  await store.flush();
  const { cursors, lastSeq, deadLetters, quarantined } = await journal.status();
  const waiting = cursors.flatMap(({ sink, backlog }) => {
    const { waiting: own = 0, lookedAt = 0 } = sinks.find((each) => each.sink === sink) ?? {};
    return backlog === 0 ? [] : [[sink, Math.min(backlog, own + Math.max(0, lastSeq - lookedAt))] as const];
  });
  return {
    waiting: Object.fromEntries(waiting),
    // Read after the journal's status: more may have been delivered before it.
    delivered: Object.fromEntries(dispatcher.status().map(({ sink, delivered }) => [sink, delivered])),
    errors: Object.fromEntries(
      sinks.flatMap(({ sink, lastError }) => (lastError === null ? [] : [[sink, lastError]])),
    ),
    deadLetters,
    quarantined,
  };
}
