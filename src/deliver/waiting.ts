import type { JournalEvent } from '../core/event.ts';
import type { Journal } from '../core/journal.ts';
import type { Target } from '../core/route.ts';

/** What is asked of a journal about one sink. */
export interface WaitingFor {
  readonly journal: Journal;
  readonly sink: string;
  /** Where its cursor stands. */
  readonly after: number;
  readonly targetsOf: (
    event: Pick<JournalEvent, 'seq' | 'type'> & { readonly handling: { readonly only?: readonly string[] } },
  ) => readonly Target[];
}

/** Events that wait for a sink, whether it is open or not. */
export async function countWaiting({ journal, sink, after, targetsOf }: WaitingFor): Promise<number> {
  let count = 0;
  for (let at = after; ;) {
    const heads = await journal.heads(at);
    for (const { seq, type, only } of heads) {
      const targets = targetsOf({ seq, type, handling: only === null ? {} : { only } });
      if (targets.some((target) => target.sink === sink)) count += 1;
    }
    const last = heads.at(-1);
    if (last === undefined) return count;
    at = last.seq;
  }
}

const PAGE = { count: 1000, bytes: 8 * 2 ** 20 };

/**
 * Makes dead letters of what waits for a sink that delivers no more; events of users being erased are passed over. Each
 * page is one step: interrupted, the next call continues.
 * @param now milliseconds since the epoch
 * @returns how many letters
 */
export async function deadLetterWaiting(
  { journal, sink, after, targetsOf }: WaitingFor,
  isErased: (event: JournalEvent) => boolean,
  now: number,
): Promise<number> {
  const given = {
    code: 'sink_dropped',
    reason: 'the sink was removed before it had this event',
    diedAt: now,
  };
  let count = 0;
  for (let at = after; ;) {
    const events = await journal.read(at, PAGE);
    const last = events.at(-1);
    if (last === undefined) return count;
    const letters = events.flatMap((event) =>
      isErased(event)
        ? []
        : targetsOf(event).flatMap(({ sink: name, destination, redactions }) =>
            name === sink
              ? [
                  {
                    seq: event.seq,
                    destination,
                    ...given,
                    ...(redactions === undefined ? {} : { redactions }),
                  },
                ]
              : [],
          ),
    );
    count += await journal.addDeadLetters({ sink, upTo: last.seq, letters });
    at = last.seq;
  }
}
