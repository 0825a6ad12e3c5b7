import type { Clock } from '../../src/core/clock.ts';
import type { EventLog, Journal, RouteKeeper } from '../../src/core/journal.ts';
import type { Sink } from '../../src/core/sink.ts';
import { type DeliveryPlan, PlanRunner } from '../../src/deliver/plan-runner.ts';
import { Dispatcher, type DispatcherOptions } from '../../src/deliver/dispatcher.ts';
import type { FeedEvents, FeedOptions } from '../../src/deliver/feed-options.ts';
import { Progress } from '../../src/deliver/progress.ts';
import type { PlannedSink } from '../../src/deliver/live-sinks.ts';
import { QueuePerUser } from '../../src/deliver/send-queue.ts';
import { Cell } from '../../src/lib/live.ts';
import { makeEvent } from '../support/events.ts';
import { ArrayJournal, byType, LIMITS, ManualClock, ScriptedSink, silentLog } from './support.ts';

/** A dispatcher by which all events go to the sink `a`, where the options say nothing else. */
export function makeDispatcher({
  journal,
  ...options
}: Partial<DispatcherOptions> & { readonly journal: EventLog; readonly clock: Clock }): Dispatcher {
  return new Dispatcher({
    logOf: () => journal,
    log: silentLog,
    retry: { initial: 100, max: 1000, giveUpAfter: 0 },
    maxPending: 50,
    maxPendingBytes: 1e6,
    targetsOf: byType(() => [{ sink: 'a', destination: null }]),
    ...options,
  });
}

/** The sink `a` behind a dispatcher that has begun, and what puts events into its journal. */
export async function feedOf(
  sink: Sink,
  {
    journal = new ArrayJournal(),
    clock = new ManualClock(),
    ...options
  }: Partial<DispatcherOptions> & { readonly journal?: ArrayJournal; readonly clock?: ManualClock } = {},
) {
  const dispatcher = makeDispatcher({ journal, clock, ...options });
  await dispatcher.add('a', sink);
  dispatcher.begin();
  const put = (count = 1): void => {
    for (let n = 0; n < count; n += 1) journal.put(makeEvent({ id: `e${journal.lastSeq + 1}` }));
  };
  return { journal, clock, dispatcher, put, cursor: () => journal.cursors.get('a') ?? 0 };
}

export function planned(
  createSink: () => Sink,
  changes: Partial<PlannedSink> & Pick<PlannedSink, 'fingerprint'>,
): PlannedSink {
  const module = { parseOptions: (value: unknown) => value, createSink };
  return { module, options: {}, keeper: null, continues: null, redacting: null, ...changes };
}

/** What delivers by a plan, from the journal to the sinks; not started. */
export function delivering(
  journal: EventLog & Journal & RouteKeeper,
  clock: Clock,
  first: DeliveryPlan,
  options: Partial<DispatcherOptions> & { readonly seen?: Journal } = {},
): { readonly delivery: PlanRunner; readonly plan: Cell<DeliveryPlan> } {
  const { seen = journal, ...own } = options;
  const plan = new Cell(first);
  const parts = { log: silentLog, clock };
  const delivery = new PlanRunner({
    plan,
    feeds: {
      ...parts,
      logOf: (sink) => journal.logOf(sink),
      retry: { initial: 10, max: 100, giveUpAfter: 0 },
      maxPending: 50,
      maxPendingBytes: 1e6,
      ...own,
    },
    context: parts,
    isOptional: () => false,
    routes: journal,
    journal: seen,
    isErased: () => false,
  });
  return { delivery, plan };
}

const ignore = (): void => {};
const IGNORED: FeedEvents = {
  moved: ignore,
  ready: ignore,
  failed: ignore,
  batchAnswered: ignore,
  confirmed: ignore,
  lost: ignore,
};

/** The window of a feed of the sink `a`, with what it hands out; nothing in it is held. */
export function windowOf(changes: Partial<FeedOptions> = {}): {
  readonly pending: QueuePerUser;
  readonly window: Progress;
} {
  const pending = new QueuePerUser({ ...LIMITS, batchCount: 1e6 });
  const options: FeedOptions = {
    name: 'a',
    sink: new ScriptedSink(() => ({ status: 'delivered' })),
    journal: new ArrayJournal(),
    clock: new ManualClock(),
    log: silentLog,
    retry: { initial: 1, max: 1, giveUpAfter: 0 },
    maxPending: 100,
    maxPendingBytes: 1000,
    targetsOf: () => [{ sink: 'a', destination: null }],
    isErased: () => false,
    ...changes,
  };
  return { pending, window: new Progress(options, pending, IGNORED) };
}
