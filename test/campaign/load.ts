import { fork } from 'node:child_process';
import { once } from 'node:events';
import { endChild } from '../support/child-server.ts';
import { within } from '../support/until.ts';
import type { LoadOrder } from './load-child.ts';
import type { SentEvent } from './oracle.ts';

interface Reply {
  readonly ok: boolean;
  readonly result: unknown;
  readonly error: string;
}

/** The load generator's process, seen from the campaign. One order at a time. */
export class Load {
  readonly #child = fork(new URL('load-child.ts', import.meta.url));

  /** Starts a new list of events. @param early see the order */
  async forget(early: boolean): Promise<void> {
    await this.#ask({ op: 'forget', early });
  }

  async begin(url: string): Promise<void> {
    await this.#ask({ op: 'begin', url });
  }

  async stretch(stretch: number): Promise<void> {
    await this.#ask({ op: 'stretch', stretch });
  }

  /** @throws when they do not come */
  async answers(count: number): Promise<void> {
    if ((await this.#ask({ op: 'await', answers: count, refusals: 0 })) !== true)
      throw new Error(`waited in vain for: ${count} answers before the receiver was gone`);
  }

  /** @throws when they do not come */
  async refusals(count: number): Promise<void> {
    if ((await this.#ask({ op: 'await', answers: 0, refusals: count })) !== true)
      throw new Error(`waited in vain for: ${count} answers of 5xx before the receiver was gone`);
  }

  /** Until nobody answers any more. */
  async over(): Promise<void> {
    await this.#ask({ op: 'over' });
  }

  async end(): Promise<void> {
    await this.#ask({ op: 'end' });
  }

  /** Takes what was answered since that moment for unanswered. @param since of `process.hrtime.bigint()` */
  async unhear(since: bigint): Promise<void> {
    await this.#ask({ op: 'unhear', since: String(since) });
  }

  async report(): Promise<SentEvent[]> {
    return (await this.#ask({ op: 'report' })) as SentEvent[];
  }

  stop(): Promise<void> {
    return endChild(this.#child);
  }

  async #ask(order: LoadOrder): Promise<unknown> {
    const ended = new AbortController();
    const answer = once(this.#child, 'message', { signal: ended.signal });
    const exit = once(this.#child, 'exit', { signal: ended.signal }).then(() => {
      throw new Error('the load generator ended');
    });
    this.#child.send(order);
    try {
      const [reply] = (await within(`load: ${order.op}`, Promise.race([answer, exit]))) as [Reply];
      if (!reply.ok) throw new Error(`load: ${reply.error}`);
      return reply.result;
    } finally {
      ended.abort();
      await Promise.allSettled([answer, exit]);
    }
  }
}
