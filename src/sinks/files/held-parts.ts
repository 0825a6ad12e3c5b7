import { messageOf } from '../../core/errors.ts';
import { DELIVERED, type SendResult, type SinkContext } from '../../core/sink.ts';
import { NOT_REMOVED, removePart, sentPath, type Part, type PartCare } from './part.ts';
import type { PartAnswers } from './part-answers.ts';
import type { RecoveredPart } from './recover.ts';
import type { FolderTroubles } from './troubles.ts';

/** Milliseconds in which the journal notes the cursor of the sink on disk. */
const NOTED_MS = 30_000;

/** `held`, with the promise of it; then `delivered`, or null when the part is lost. */
interface State {
  readonly confirmed: PromiseWithResolvers<void>;
  answer: SendResult | null;
}

/** A part whose records are in the store. */
interface SentPart {
  readonly path: string;
  /** Number of the newest part that was held when this one was sent. */
  newest: number;
}

/**
 * Parts in a spool: an event in one is held until its file and its line are in the store. When a part is lost, the journal
 * sends its events again.
 *
 * After a crash the journal sends again everything from the oldest held event on. So a sent part stays on the disk, to recognise
 * its events, until all parts that were held at the same time are in the store too.
 */
export class HeldParts implements PartAnswers {
  readonly care: PartCare;
  readonly afterReplacement = 'What was in it is sent again from the journal.';
  readonly #context: SinkContext;
  readonly #troubles: FolderTroubles;
  readonly #states = new WeakMap<Part, State>();
  /** Parts not in the store, numbered in their order; also lost ones, until their records are in other parts. */
  readonly #held = new Map<Part, number>();
  #newest = 0;
  /** Oldest first. */
  readonly #sent: SentPart[] = [];
  readonly #timers = new Set<() => void>();
  #isStopped = false;

  /** @param hashes of `PartCare` */
  constructor(context: SinkContext, troubles: FolderTroubles, hashes: boolean) {
    this.care = { syncs: false, hashes };
    this.#context = context;
    this.#troubles = troubles;
  }

  of(part: Part): SendResult | null {
    return this.#stateOf(part).answer;
  }

  recovered(parts: readonly RecoveredPart[]): void {
    for (const { part, state } of parts) if (state !== 'listed') this.#stateOf(part);
    for (const { part, state } of parts) if (state === 'listed') this.finished(part);
  }

  finished(part: Part): void {
    const state = this.#stateOf(part);
    state.answer = DELIVERED;
    state.confirmed.resolve();
    this.#held.delete(part);
    this.#sent.push({ path: sentPath(part.name), newest: this.#newest });
    this.#removeSent();
  }

  async lost(part: Part, why: string): Promise<void> {
    const state = this.#stateOf(part);
    state.answer = null;
    // By then its records are in other parts.
    this.#after(NOTED_MS, () => {
      this.#held.delete(part);
      for (const sent of this.#sent) sent.newest = this.#newest;
      this.#removeSent();
    });
    const { path, stats } = part;
    const reason = `${path} disappeared: ${why}`;
    const detail = `${reason}; its ${stats.records} records are sent again from the journal`;
    this.#troubles.happened('spool_lost', detail);
    const fields = { path, records: stats.records, why };
    this.#context.log.error(fields, 'an unfinished archive file disappeared');
    state.confirmed.reject(new Error(reason));
  }

  async retry(): Promise<void> {}

  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#timers) cancel();
  }

  #stateOf(part: Part): State {
    let state = this.#states.get(part);
    if (state === undefined) {
      const confirmed = Promise.withResolvers<void>();
      // It may be that no one waits for it.
      confirmed.promise.catch(() => undefined);
      state = { confirmed, answer: { status: 'held', until: confirmed.promise } };
      this.#states.set(part, state);
      this.#held.set(part, (this.#newest += 1));
    }
    return state;
  }

  /** Removes the sent parts that wait for no held part, once the journal has noted their events. */
  #removeSent(): void {
    const [oldest = Number.POSITIVE_INFINITY] = this.#held.values();
    for (let [first] = this.#sent; first !== undefined && first.newest < oldest; [first] = this.#sent) {
      this.#sent.shift();
      this.#removeLater(first.path);
    }
  }

  #removeLater(path: string): void {
    this.#after(NOTED_MS, () => {
      removePart({ path }).catch((error: unknown) => {
        this.#context.log.warn({ path, error: messageOf(error) }, NOT_REMOVED);
        this.#removeLater(path);
      });
    });
  }

  #after(ms: number, task: () => void): void {
    if (this.#isStopped) return;
    const cancel = this.#context.clock.after(ms, () => {
      this.#timers.delete(cancel);
      task();
    });
    this.#timers.add(cancel);
  }
}
