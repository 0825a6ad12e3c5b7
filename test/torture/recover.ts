import { setTimeout as wait } from 'node:timers/promises';
import pino from 'pino';
import type { ResolvedConfig } from '../../src/config/config.ts';
import type { MillraceError } from '../../src/core/errors.ts';
import { GuardedIngest } from '../../src/core/ingest.ts';
import type { Event } from '../../src/core/event.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import type { Dispatcher } from '../../src/deliver/dispatcher.ts';
import { createTake } from '../../src/sources/take.ts';
import { Cell } from '../../src/lib/live.ts';
import { Parts, type Started } from '../../src/lib/parts.ts';
import { makeDelivery, openSinks } from '../../src/app/delivery.ts';
import { makeErasures } from '../../src/app/erasures.ts';
import type { StoreParts } from '../../src/app/store.ts';
import { type Base, foundation } from '../../src/app/system.ts';
import { makePlan } from '../../src/app/plan.ts';
import { InlineWriter } from '../support/inline-journal.ts';
import { ManualClock } from '../support/manual-clock.ts';
import type { Sent } from './history.ts';

/** What a receiver answered that was started on a state. */
export interface Recovered {
  /** By id: what it said to events that had been acknowledged, and to new ones. */
  readonly answers: ReadonlyMap<string, string>;
  /** Ids in quarantine. */
  readonly quarantined: ReadonlySet<string>;
}

/** One for all, and not to a file: each that could write would be closed at the end of the process. */
const SILENT = pino({ level: 'silent' }, { write: () => undefined });
/** Milliseconds; more than anything takes that is not stuck. */
const PATIENCE = 30_000;
/** So much faster than the wall's goes the time of a recovery, which then hardly waits. */
const FASTER = 25;

/**
 * Starts the receiver in this process on the state that lies on the disk, without its listeners: it recovers and delivers
 * what waits; then it is sent events, old and new, finishes erasures, delivers, and stops.
 * @throws what a start or a stop throws
 */
export async function recover(
  config: ResolvedConfig,
  now: number,
  again: readonly Sent[],
  fresh: readonly Sent[],
): Promise<Recovered> {
  const clock = new FastClock(now);
  const failures: MillraceError[] = [];
  const options = {
    log: SILENT,
    onFailure: (error: MillraceError) => failures.push(error),
  };
  const base = foundation(new Cell(await makePlan(config)), options, clock);
  const parts = new Parts((error) => failures.push(error as MillraceError));
  const kept = await parts.start('store', () => openStore(base));
  const delivering = await parts.start('delivery', () => makeDelivery(base, kept, undefined));
  const erasures = await parts.start('erasures', () => makeErasures(base, kept, delivering));
  await parts.start('sinks', () => openSinks(delivering, kept));
  const answers = new Map<string, string>();
  const quarantined = new Set<string>();
  try {
    const ask = async (sent: Sent): Promise<void> => {
      const { status } = await kept.ingest.accept(eventOf(sent, now));
      answers.set(sent.id, status);
    };
    await Promise.all(again.map(ask));
    await clock.during(erasures.run());
    await Promise.all(fresh.map(ask));
    await drain(delivering.dispatcher, kept.store, clock);
    const held = await kept.journal?.listQuarantine({ limit: 100_000 }, false);
    for (const { id } of held ?? []) quarantined.add(id);
  } finally {
    await clock.during(parts.stop(new AbortController().signal));
  }
  if (failures[0] !== undefined) throw failures[0];
  return { answers, quarantined };
}

async function drain(dispatcher: Dispatcher, store: StoreParts['store'], clock: FastClock): Promise<void> {
  for (const end = performance.now() + PATIENCE; dispatcher.slowestCursor() < store.lastSeq;) {
    if (performance.now() > end)
      throw new Error(`events wait for ever: ${JSON.stringify(dispatcher.status())}`);
    await clock.step();
  }
}

/** The journal without its thread: what it does on the disk is the same. */
function openStore({ config, clock, onFailure, users, meter, validate }: Base): Started<StoreParts> {
  const options = { ...config.journal, create: true, clock, onFailure, isErased: users.isErased };
  const journal = new SqliteJournal(new InlineWriter(options, null), options);
  const ingest = new GuardedIngest(journal, users.isErased, meter);
  const take = createTake({ ingest, validate, maxBytes: config.server.maxBodyBytes });
  const made = { store: journal, journal, shared: null, schema: null, ingest, take };
  return { made, stop: () => journal.close() };
}

class FastClock extends ManualClock {
  readonly #since = performance.now();

  async step(): Promise<void> {
    // A thread of libuv works during that time; turns of the event loop would only take its processor.
    await wait(1);
    this.advance((performance.now() - this.#since) * FASTER - this.monotonic());
  }

  /** Lets time go by until something is over. */
  async during<T>(work: Promise<T>): Promise<T> {
    const state = { isOver: false };
    const ended = work.finally(() => (state.isOver = true));
    ended.catch(() => undefined);
    while (!state.isOver) await this.step();
    return ended;
  }
}

function eventOf({ id, body, type, user, valid }: Sent, now: number): Event {
  return {
    id,
    source: 'webhooks',
    type,
    team: valid ? '6b0e9a52-0000-4000-8000-000000000001' : null,
    user,
    clientUser: `client of ${user}`,
    receivedAt: now,
    headers: {},
    body: Buffer.from(body),
  };
}
