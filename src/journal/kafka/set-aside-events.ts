import type { ErasureRun } from '../../core/erasure.ts';
import type { Event } from '../../core/event.ts';
import type { InvalidReason } from '../../core/ingest.ts';
import type { DeadLetter, JournalStatus, QuarantinedEvent, Selection } from '../../core/journal.ts';
import { formatTarget } from '../../core/route.ts';
import { deadLetterKey } from './dead-deliveries.ts';
import { eraseFromTopics } from './erasure.ts';
import { fingerprintOf } from './id-table.ts';
import { recordOf, type RecordExtras } from './record.ts';
import { SetAsideTopic, type SetAsideRecord } from './set-aside-topic.ts';
import type { Topics } from './topics.ts';
import { RELEASED, RETRIED } from './window.ts';

/** Longest reason of a dead letter, characters. */
const LONGEST_REASON = 1000;

/** The part of a fleet's journal that waits for a person: the quarantine and the dead letters, each in a topic. */
export abstract class SetAsideEvents {
  readonly #topics: Topics;
  readonly #quarantine: SetAsideTopic;
  readonly #deadLetters: SetAsideTopic;
  /** Records that are being appended to either. */
  readonly #appending = new Set<Promise<unknown>>();

  constructor(topics: Topics) {
    this.#topics = topics;
    this.#quarantine = new SetAsideTopic(topics.quarantine, topics.cluster);
    this.#deadLetters = new SetAsideTopic(topics.deadLetters, topics.cluster);
  }

  /** Appends an event to the topic of events again. @returns false when its user was erased, and nothing was appended */
  protected abstract sendAgain(event: Event, extras: RecordExtras): Promise<boolean>;

  async counts(): Promise<Pick<JournalStatus, 'quarantined' | 'deadLetters'>> {
    return {
      quarantined: await this.#quarantine.count(),
      deadLetters: await this.#deadLetters.count(),
    };
  }

  async listQuarantine(selection: Selection, bodies = true): Promise<readonly QuarantinedEvent[]> {
    const found = await this.#quarantine.list(selection, bodies);
    return found.map(({ key, recorded: { event, reasons }, bodyBytes }) => {
      return { ...event, key, reasons, bodyBytes };
    });
  }

  dropQuarantine(selection: Selection): Promise<number> {
    return this.#quarantine.drop(selection);
  }

  async release(key: number, event: Event): Promise<boolean> {
    const [found] = await this.#quarantine.list({ keys: [key] }, false);
    // Removed by another process.
    if (found === undefined) return false;
    const { dedupKey } = found.recorded;
    // By its fingerprint: the same event can be in quarantine again, under another number.
    const print = fingerprintOf(event.source, dedupKey, event.body).toString('hex');
    const isSent = await this.sendAgain(event, { dedupKey, again: `${RELEASED} ${print}` });
    await this.#quarantine.remove(found.name);
    return isSent;
  }

  async listDeadLetters(selection: Selection, bodies = true): Promise<readonly DeadLetter[]> {
    return (await this.#deadLetters.list(selection, bodies)).flatMap(deadLetterOf);
  }

  dropDeadLetters(selection: Selection): Promise<number> {
    return this.#deadLetters.drop(selection);
  }

  async retryDeadLetters(selection: Selection): Promise<number> {
    const found = await this.#deadLetters.list(selection, true);
    let retried = 0;
    for (const record of found)
      for (const { key, sink, destination, diedAt, event } of deadLetterOf(record)) {
        const handling = { ...event.handling, only: [formatTarget({ sink, destination })] };
        const isSent = await this.sendAgain(event, { handling, again: `${RETRIED} ${key} of ${diedAt}` });
        await this.#deadLetters.remove(record.name);
        if (isSent) retried += 1;
      }
    return retried;
  }

  /** The key differs for an event that was retried and is refused once more: its first dead letter is about to be removed. */
  protected async addDeadLetter({ event, ...about }: Omit<DeadLetter, 'key'>): Promise<void> {
    const { sink, destination, code, reason, attempts, diedAt } = about;
    const key = deadLetterKey(about, event);
    const refusal = { sink, destination, code, reason: shortened(reason), attempts, diedAt };
    const record = recordOf(event, key, { handling: event.handling, refusal });
    await this.#tracked(this.#topics.deadLetters.append(key, record));
  }

  /** @param room bytes that its batch must have left; null for no bound */
  protected async addQuarantined(
    event: Event,
    reasons: readonly InvalidReason[],
    dedupKey: string,
    room: number | null,
  ): Promise<void> {
    const key = Buffer.from(fingerprintOf(event.source, dedupKey, event.body).toString('hex'));
    const record = recordOf(event, key, { reasons, dedupKey });
    await this.#tracked(this.#topics.quarantine.append(key, record, room));
  }

  /** Resolves when all that is being appended now is written, or has failed. Events in the log are not waited for: deliverers skip those of erased users. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#appending);
  }

  async #tracked(work: Promise<void>): Promise<void> {
    this.#appending.add(work);
    await work.finally(() => this.#appending.delete(work));
  }

  async erase(run: ErasureRun): Promise<void> {
    const { events, cluster } = this.#topics;
    await eraseFromTopics(cluster, events.topic, [this.#quarantine, this.#deadLetters], run);
  }
}

function shortened(reason: string): string {
  return reason.length <= LONGEST_REASON ? reason : `${reason.slice(0, LONGEST_REASON).toWellFormed()} …`;
}

/** None for a record that is no dead letter. */
function deadLetterOf({ key, recorded, bodyBytes }: SetAsideRecord): DeadLetter[] {
  const { event, handling, refusal } = recorded;
  return refusal === null ? [] : [{ ...refusal, key, bodyBytes, event: { ...event, handling, seq: 0 } }];
}
