import { Pool } from 'undici';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { postSigned } from './signed-events.ts';
import { until } from './until.ts';

const CONNECTIONS = 8;

class Unexpected extends Error {}

/** What a sender knows: what was acknowledged, and what it has to send again because no answer came. */
export class LoadSender {
  readonly sent = new Map<string, Buffer>();
  readonly acknowledged = new Map<string, Buffer>();
  readonly #again: string[] = [];
  answers = 0;
  /** Answers of 5xx. */
  refused = 0;

  /** Keeps the load up until so many more have been answered and `then` is over. */
  async during(url: string, answers: number, then: () => Promise<void>): Promise<void> {
    const stop = new AbortController();
    const load = this.#load(url, stop.signal);
    const goal = this.answers + answers;
    try {
      const missing = `${answers} answers before the receiver was gone`;
      await Promise.race([
        until(missing, () => this.answers >= goal),
        load.then(() => {
          throw new Error(`waited in vain for: ${missing}`);
        }),
      ]);
      await then();
    } finally {
      stop.abort();
      await load;
    }
  }

  /** Posts over several connections, each event after the answer to the one before, until `signal` aborts. */
  async #load(url: string, signal: AbortSignal): Promise<void> {
    const pool = new Pool(new URL(url).origin, { connections: CONNECTIONS });
    await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        while (!signal.aborted) if (!(await this.#one(url, pool))) break;
      }),
    );
    await pool.destroy();
  }

  /** False when no answer came. */
  async #one(url: string, dispatcher: Pool): Promise<boolean> {
    const id = this.#again.pop() ?? this.#next();
    const body = this.sent.get(id) ?? Buffer.alloc(0);
    try {
      const { status } = await postSigned(url, body, { id, dispatcher });
      if (status >= 500) {
        this.refused += 1;
        this.#again.push(id);
        return true;
      }
      if (status !== 200 && status !== 202) throw new Unexpected(`${id} was answered with ${status}`);
      this.acknowledged.set(id, body);
      this.answers += 1;
      return true;
    } catch (error) {
      if (error instanceof Unexpected) throw error;
      this.#again.push(id);
      return false;
    }
  }

  #next(): string {
    const { id, body } = madeUpEvent(this.sent.size);
    this.sent.set(id, body);
    return id;
  }
}
