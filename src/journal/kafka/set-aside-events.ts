import type { ErasureRun } from '../../core/erasure.ts';
import type { Event } from '../../core/event.ts';
import type { InvalidReason } from '../../core/ingest.ts';
import type { DeadLetter, JournalStatus, QuarantinedEvent, Selection } from '../../core/journal.ts';
import { formatTarget } from '../../core/route.ts';
import { letterKey, printOf } from './dead-deliveries.ts';
import { eraseFromTopics } from './erasure.ts';
import { fingerprintOf } from './id-table.ts';
import { recordOf, type Extra, type SharedEvent } from './record.ts';
import { SetAsideTopic, type Aside } from './set-aside-topic.ts';
import type { Topics, TopicsOptions } from './topics.ts';
import { RELEASED, RETRIED } from './window.ts';

/** Characters of what a dead letter says. */
const LONGEST_REASON = 1000;

/**
 * Sends what was set aside on its way again.
 * @returns false where it is of who was erased, and goes nowhere
 */
export type SendAgain = (event: Event, extra: Extra) => Promise<boolean>;

/** What is kept until a person decides: the quarantine and the dead letters of a fleet, each in a topic. */
export class Letters {
  readonly #options: TopicsOptions;
  readonly #topics: Topics;
  readonly #sendAgain: SendAgain;
  readonly #quarantine: SetAsideTopic;
  readonly #deadLetters: SetAsideTopic;
  /** Records on their way into either. */
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: TopicsOptions, topics: Topics, sendAgain: SendAgain) {
    this.#options = options;
    this.#topics = topics;
    this.#sendAgain = sendAgain;
    const connect = () => topics.look();
    this.#quarantine = new SetAsideTopic(topics.quarantine, connect);
    this.#deadLetters = new SetAsideTopic(topics.deadLetters, connect);
  }

  async counts(): Promise<Pick<JournalStatus, 'quarantined' | 'deadLetters'>> {
    return {
      quarantined: await this.#quarantine.count(),
      deadLetters: await this.#deadLetters.count(),
    };
  }

  async listQuarantine(selection: Selection, bodies = true): Promise<readonly QuarantinedEvent[]> {
    const found = await this.#quarantine.list(selection, bodies);
    return found.map(({ key, kept, bodyBytes }) => ({
      ...kept.event,
      key,
      reasons: kept.reasons,
      bodyBytes,
    }));
  }

  dropQuarantine(selection: Selection): Promise<number> {
    return this.#quarantine.drop(selection);
  }

  async release(key: number, event: Event): Promise<boolean> {
    const [found] = await this.#quarantine.list({ keys: [key] }, false);
    // Somebody else has taken it out.
    if (found === undefined) return false;
    const { dedupKey } = found.kept;
    // Not its number: it may come again, and be in quarantine under another one.
    const print = fingerprintOf(event.source, dedupKey, event.body).toString('hex');
    const isSent = await this.#sendAgain(event, { dedupKey, again: `${RELEASED} ${print}` });
    await this.#quarantine.remove(found.place);
    return isSent;
  }

  async listDeadLetters(selection: Selection, bodies = true): Promise<readonly DeadLetter[]> {
    return (await this.#deadLetters.list(selection, bodies)).flatMap(letterOf);
  }

  dropDeadLetters(selection: Selection): Promise<number> {
    return this.#deadLetters.drop(selection);
  }

  async retryDeadLetters(selection: Selection): Promise<number> {
    const found = await this.#deadLetters.list(selection, true);
    const letters = found.flatMap((aside) =>
      letterOf(aside).map((letter) => ({ ...letter, at: aside.place })),
    );
    for (const { key, sink, destination, diedAt, event, at } of letters) {
      const handling = { ...event.handling, only: [formatTarget({ sink, destination })] };
      await this.#sendAgain(event, { handling, again: `${RETRIED} ${key} of ${diedAt}` });
      await this.#deadLetters.remove(at);
    }
    return letters.length;
  }

  async addDeadLetter({ event, ...letter }: Omit<DeadLetter, 'key'>): Promise<void> {
    // One that is retried and refused once more is another one: the earlier is about to be taken out.
    const { again = null, place }: SharedEvent = event;
    const key = letterKey(letter, printOf(event), again, place ?? null);
    const { sink, destination, code, reason, attempts, diedAt } = letter;
    const extra: Extra = {
      handling: event.handling,
      letter: { sink, destination, code, reason: shortened(reason), attempts, diedAt },
    };
    await this.#noted(this.#topics.deadLetters.append(key, recordOf(event, key, extra)));
  }

  /** @param room bytes that its batch must have left */
  async addQuarantined(
    event: Event,
    reasons: readonly InvalidReason[],
    dedupKey: string,
    room: number | null,
  ): Promise<void> {
    const print = fingerprintOf(event.source, dedupKey, event.body);
    const key = Buffer.from(print.toString('hex'));
    const record = recordOf(event, key, { reasons, dedupKey });
    await this.#noted(this.#topics.quarantine.append(key, record, room));
  }

  /** Resolves when all that is on its way there now has come to its end. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  async #noted<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    try {
      return await work;
    } finally {
      this.#underWay.delete(work);
    }
  }

  async erase(run: ErasureRun): Promise<void> {
    const { topic: events, quarantineTopic, deadLetterTopic } = this.#options;
    const setAside = new Map([
      [quarantineTopic, this.#quarantine],
      [deadLetterTopic, this.#deadLetters],
    ]);
    const connect = () => this.#topics.look();
    await eraseFromTopics({ events, setAside, connect }, run);
  }
}

/** What a sink said may be as long as a page. */
function shortened(reason: string): string {
  return reason.length <= LONGEST_REASON ? reason : `${reason.slice(0, LONGEST_REASON).toWellFormed()} …`;
}

/** A dead letter of the topic; nothing for a record that is none. */
function letterOf({ key, kept, bodyBytes }: Aside): DeadLetter[] {
  const { event, handling, letter } = kept;
  if (letter === null) return [];
  return [{ ...letter, key, bodyBytes, event: { ...event, handling, seq: 0 } }];
}
