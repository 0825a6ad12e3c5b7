import { MillraceError } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { Journal } from '../core/journal.ts';
import type { GivenUp } from '../core/operations.ts';
import type { Target } from '../core/route.ts';
import { AcceptedRoutes, type Addressed } from './routes/accepted.ts';
import { settledAheadOf } from './settled-ahead.ts';

/** A sink of a journal, open or not, whose waiting events are counted. */
export interface WaitingFor {
  readonly journal: Journal;
  readonly sink: string;
  /** Its cursor. */
  readonly after: number;
  readonly routes: AcceptedRoutes;
}

/** @returns a function that returns the targets of an event at the sink that it has not had */
async function openTargetsBy({ journal, sink, routes }: WaitingFor) {
  const ahead = await settledAheadOf(sink, { journal, routes: () => routes });
  return (event: Addressed): readonly Target[] => {
    const targets = routes.targetsOf(event).filter((target) => target.sink === sink);
    return ahead?.open(event, targets) ?? targets;
  };
}

/** Counts the events that wait for a sink. */
export async function countWaiting(waiting: WaitingFor): Promise<number> {
  const { journal, after } = waiting;
  const openTargets = await openTargetsBy(waiting);
  let count = 0;
  for (let at = after; ;) {
    const heads = await journal.heads(at);
    for (const { seq, type, only } of heads)
      if (openTargets({ seq, type, handling: only === null ? {} : { only } }).length > 0) count += 1;
    const last = heads.at(-1);
    if (last === undefined) return count;
    at = last.seq;
  }
}

/** The same for each sink of a journal that events wait for. */
export async function countAllWaiting(journal: Journal): Promise<ReadonlyMap<string, number>> {
  const routes = new AcceptedRoutes(await journal.routes());
  const counts = new Map<string, number>();
  for (const [sink, after] of await journal.cursors()) {
    const count = await countWaiting({ journal, sink, after, routes });
    if (count > 0) counts.set(sink, count);
  }
  return counts;
}

/** Few bytes: on a disk that is nearly full there must be room for a page before segments can be removed. */
const PAGE = { count: 1000, bytes: 2 ** 17 };

/**
 * Makes dead letters of what waits for a sink that delivers no more, without events of erased users. When it is interrupted, the
 * next call continues.
 * @param now milliseconds since the epoch
 * @returns how many dead letters
 */
export async function deadLetterWaiting(
  waiting: WaitingFor,
  isErased: (event: JournalEvent) => boolean,
  now: number,
): Promise<number> {
  const { journal, sink, after } = waiting;
  const openTargets = await openTargetsBy(waiting);
  const about = {
    code: 'sink_dropped',
    reason: 'the sink was removed before it had this event',
    diedAt: now,
  };
  let count = 0;
  for (let at = after; ;) {
    const events = await journal.read(at, PAGE);
    const last = events.at(-1);
    if (last === undefined) return count;
    const deadLetters = events.flatMap((event) =>
      isErased(event)
        ? []
        : openTargets(event).map(({ destination, redactions }) => ({
            seq: event.seq,
            destination,
            ...about,
            ...(redactions === undefined ? {} : { redactions }),
          })),
    );
    count += await journal.addDeadLetters({ sink, upTo: last.seq, deadLetters });
    at = last.seq;
  }
}

/**
 * Makes dead letters of what waits for a sink, and removes it from the journal, while no process delivers.
 * @throws MillraceError usage for a sink the journal does not know
 */
export async function dropSink(
  journal: Journal,
  sink: string,
  isErased: (event: JournalEvent) => boolean,
  now: number,
): Promise<GivenUp> {
  const after = new Map(await journal.cursors()).get(sink);
  if (after === undefined) throw new MillraceError('usage', `the journal knows no sink ${sink}`);
  const record = await journal.routes();
  const accepted = new AcceptedRoutes(record);
  const waiting = { journal, sink, after, routes: accepted };
  const dropped = await deadLetterWaiting(waiting, isErased, now);
  // A dead letter that is retried before the next start goes by these routes.
  if (record.eras.length > 0) await journal.acceptUnder(accepted.routesWithout(sink));
  await journal.leave(sink);
  return { sink, dropped, waiting: 0 };
}
