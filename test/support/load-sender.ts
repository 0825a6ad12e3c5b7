import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { postSigned } from './signed-events.ts';

const CONNECTIONS = 8;
/** Milliseconds by which an answer that comes too early is ahead of its event. */
const EARLY = 50;

class Unexpected extends Error {}

/** What a sender knows: what was acknowledged, and what it has to send again because no answer came. */
export class LoadSender {
  readonly sent = new Map<string, Buffer>();
  readonly acknowledged = new Map<string, Buffer>();
  /** The stretch of a run, as its user counts them, that is now; in which each event was sent first; and answered. */
  stretch = 0;
  readonly firstSent = new Map<string, number>();
  readonly answered = new Map<string, { readonly stretch: number; readonly at: bigint }>();
  readonly #again: string[] = [];
  readonly #early: boolean;
  answers = 0;
  /** Answers of 5xx. */
  refused = 0;

  /** @param early stands for a receiver that answers before it has the event on disk: it is passed on a little later */
  constructor(early = false) {
    this.#early = early;
  }

  /** Posts over several connections, each event after the answer to the one before, until `signal` aborts. */
  async load(url: string, signal: AbortSignal): Promise<void> {
    const pool = new Pool(new URL(url).origin, { connections: CONNECTIONS });
    await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        while (!signal.aborted)
          if (!(await (this.#early ? this.#oneEarly(url, pool) : this.#one(url, pool)))) break;
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
      this.#acknowledge(id, body);
      return true;
    } catch (error) {
      if (error instanceof Unexpected) throw error;
      this.#again.push(id);
      return false;
    }
  }

  /** Takes answers that came at that moment or later for never given: their events are sent again. */
  unhear(since: bigint): void {
    for (const [id, { at }] of this.answered) {
      if (at < since) continue;
      this.answered.delete(id);
      this.acknowledged.delete(id);
      this.#again.push(id);
    }
  }

  /** Counts the event as answered, and posts it after that. */
  async #oneEarly(url: string, dispatcher: Pool): Promise<boolean> {
    const id = this.#next();
    const body = this.sent.get(id) ?? Buffer.alloc(0);
    this.#acknowledge(id, body);
    await wait(EARLY);
    try {
      const { status } = await postSigned(url, body, { id, dispatcher });
      if (status >= 500) this.refused += 1;
      return true;
    } catch {
      return false;
    }
  }

  #acknowledge(id: string, body: Buffer): void {
    this.acknowledged.set(id, body);
    this.answered.set(id, { stretch: this.stretch, at: process.hrtime.bigint() });
    this.answers += 1;
  }

  #next(): string {
    const { id, body } = madeUpEvent(this.sent.size);
    this.sent.set(id, body);
    this.firstSent.set(id, this.stretch);
    return id;
  }
}
