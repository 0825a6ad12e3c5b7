import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';
import type { Delivery, TakenBack } from '../core/sink.ts';
import type { Redaction } from '../core/route.ts';
import type { FeedOptions } from './feed-options.ts';
import { Item } from './item.ts';

const PAGE = { count: 1000, bytes: 8 * 2 ** 20 } as const;

/** Makes and counts the dead letters of one sink. */
export class DeadLetters {
  count = 0;
  readonly #options: FeedOptions;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Stores the event as it came: what is redacted is decided again when it is retried. */
  async add(item: Item, code: string, reason: string): Promise<void> {
    const { name: sink, journal, clock, log } = this.#options;
    const { destination, attempts } = item;
    const event = withRedactions(Item.originalOf(item), item.redactions);
    await journal.addDeadLetter({ sink, destination, code, reason, attempts, diedAt: clock.now(), event });
    this.#died(item, code, reason);
    log.error({ sink, destination, id: event.id, code, reason }, 'dead letter');
  }

  /** As `SinkContext.takeBack`; makes none of events of erased users. */
  async takeBack({ seqs, destination, code, reason }: TakenBack): Promise<number> {
    const { name: sink, journal, targetsOf, isErased, clock, log } = this.#options;
    const about = { sink, destination, code, reason, attempts: 1, diedAt: clock.now() };
    let count = 0;
    for await (const page of eventsOf(journal, seqs)) {
      const due = page.filter((event) => event.handling.erased !== true && targetsOf(event).length > 0);
      const events = due.filter((event) => !isErased(event));
      if ('passedOver' in journal)
        for (const event of due) if (isErased(event)) journal.passedOver(sink, event);
      await Promise.all(
        events.map((event) => {
          const targets = targetsOf(event).filter((target) => target.sink === sink);
          const redactions = targets.flatMap((target) => target.redactions ?? []);
          return journal.addDeadLetter({ ...about, event: withRedactions(event, redactions) });
        }),
      );
      count += events.length;
      for (const event of events) this.#died({ event, destination }, code, reason);
    }
    log.error({ sink, destination, code, reason, events: count }, 'dead letters');
    return count;
  }

  #died(delivery: Delivery, code: string, reason: string): void {
    this.count += 1;
    this.#options.observer?.died(this.#options.name, delivery, code, reason);
  }
}

/** For a retry when no route says any more what to redact. */
function withRedactions(event: JournalEvent, redactions: readonly Redaction[]): JournalEvent {
  return redactions.length === 0 ? event : { ...event, handling: { ...event.handling, redactions } };
}

/**
 * The events of these seqs that the journal still holds.
 * @param seqs ascending
 */
async function* eventsOf(
  journal: Pick<EventLog, 'read'>,
  seqs: readonly number[],
): AsyncGenerator<readonly JournalEvent[]> {
  const wanted = new Set(seqs);
  for (let at = 0; at < seqs.length;) {
    const events = await journal.read((seqs[at] ?? 0) - 1, PAGE);
    const last = events.at(-1);
    if (last === undefined) return;
    yield events.filter(({ seq }) => wanted.has(seq));
    while (at < seqs.length && (seqs[at] ?? 0) <= last.seq) at += 1;
  }
}
