import { LoadSender } from '../support/load-sender.ts';
import { until, within } from '../support/until.ts';
import { digestOf, type SentEvent } from './oracle.ts';

/** What sends events to the receivers of a history; what was answered, it alone knows. */
export class Load {
  #sender = new LoadSender();
  #stop = new AbortController();
  #sending: Promise<void> = Promise.resolve();
  #isOver = true;

  /** Starts a new list of events. @param early counts an event as acknowledged before the receiver has it */
  forget(early: boolean): void {
    this.#sender = new LoadSender(early);
  }

  begin(url: string): void {
    this.#stop = new AbortController();
    this.#isOver = false;
    this.#sending = this.#sender.load(url, this.#stop.signal).finally(() => (this.#isOver = true));
    // `over` throws it.
    this.#sending.catch(() => undefined);
  }

  /** What is sent from now on belongs to this stretch of the run. */
  stretch(stretch: number): void {
    this.#sender.stretch = stretch;
  }

  /** @throws when so many more answers of 2xx do not come before the receiver is gone */
  async answers(count: number): Promise<void> {
    await this.#more(count, 'answers', () => this.#sender.answers);
  }

  /** @throws when so many more answers of 5xx do not come before the receiver is gone */
  async refusals(count: number): Promise<void> {
    await this.#more(count, 'answers of 5xx', () => this.#sender.refused);
  }

  /** Resolves when the receiver does not answer any more. */
  async over(): Promise<void> {
    await within('the end of the load', this.#sending);
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.over();
  }

  /** Takes what was answered since that moment for unanswered. @param since of `process.hrtime.bigint()` */
  unhear(since: bigint): void {
    this.#sender.unhear(since);
  }

  report(): SentEvent[] {
    const { sent, acknowledged, firstSent, answered, stretch } = this.#sender;
    return [...sent].map(([id, body]) => ({
      id,
      type: (JSON.parse(body.toString()) as { event_type: string }).event_type,
      digest: digestOf(body),
      acknowledged: acknowledged.has(id),
      first: firstSent.get(id) ?? 0,
      // Its sinks are decided when it is accepted, and no later routes change them.
      last: answered.get(id)?.stretch ?? stretch,
    }));
  }

  async #more(count: number, what: string, counted: () => number): Promise<void> {
    const enough = counted() + count;
    await until(what, () => counted() >= enough || this.#isOver);
    if (this.#isOver) await this.#sending;
    if (counted() < enough)
      throw new Error(`waited in vain for: ${count} ${what} before the receiver was gone`);
  }
}
