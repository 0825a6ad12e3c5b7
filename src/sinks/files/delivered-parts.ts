import { messageOf } from '../../core/errors.ts';
import { DELIVERED, type SendResult, type SinkContext } from '../../core/sink.ts';
import type { Part } from './part.ts';
import type { PartAnswers } from './part-answers.ts';
import { SHOWN_MS, type FolderTroubles } from './troubles.ts';

/** Code of the dead letters, and of the trouble. */
const CODE = 'file_lost';
const NO_LOSS = { files: 0, records: 0, deadLetters: 0, from: Infinity, to: -Infinity };

/**
 * Parts in the archive's own folder: an event in one counts as delivered. When a part disappears, each of its events becomes a
 * dead letter, if the journal still has it; the trouble says when the others were received.
 */
export class DeliveredParts implements PartAnswers {
  readonly care = { syncs: true, hashes: false };
  readonly #context: SinkContext;
  readonly #troubles: FolderTroubles;
  /** Lost parts whose events are not dead letters yet. */
  readonly #pending = new Set<Part>();
  #loss = { ...NO_LOSS, since: 0, last: 0, path: '' };

  constructor(context: SinkContext, troubles: FolderTroubles) {
    this.#context = context;
    this.#troubles = troubles;
  }

  get afterReplacement(): string {
    return `To restore what the journal still holds of its files: millrace replay journal --to ${this.#context.name}`;
  }

  of(): SendResult {
    return DELIVERED;
  }

  recovered(): void {}

  finished(): void {}

  async lost(part: Part, why: string): Promise<void> {
    const { records, firstReceivedAt, lastReceivedAt } = part.stats;
    if (records === 0) return;
    const { log, clock } = this.#context;
    const now = clock.now();
    if (this.#loss.files === 0 || now - this.#loss.last >= SHOWN_MS)
      this.#loss = { ...NO_LOSS, since: now, last: now, path: part.path };
    const loss = this.#loss;
    loss.files += 1;
    loss.records += records;
    loss.from = Math.min(loss.from, firstReceivedAt);
    loss.to = Math.max(loss.to, lastReceivedAt);
    loss.last = now;
    log.error({ path: part.path, records, why }, 'an unfinished archive file disappeared');
    this.#show();
    this.#pending.add(part);
    await this.retry();
  }

  async retry(): Promise<void> {
    const { takeBack, log } = this.#context;
    for (const part of this.#pending) {
      this.#pending.delete(part);
      if (takeBack === undefined) continue;
      const reason = `${part.path} disappeared before it was closed`;
      try {
        const { destination } = part;
        const seqs = [...new Set(part.seqs)].toSorted((one, other) => one - other);
        this.#loss.deadLetters += await takeBack({ seqs, destination, code: CODE, reason });
        this.#show();
      } catch (error) {
        this.#pending.add(part);
        log.error({ path: part.path, error: messageOf(error) }, 'its records could not become dead letters');
        return;
      }
    }
  }

  stop(): void {}

  #show(): void {
    const { files, records, deadLetters, from, to, path, since: first } = this.#loss;
    const { name } = this.#context;
    const [since, until] = [isoTime(from), isoTime(to + 1)];
    const what = files === 1 ? `the unfinished file ${path}` : `${files} unfinished files, ${path} first`;
    const parts = [
      `${records} delivered records, received from ${since} to ${until}, were lost with ${what}`,
    ];
    if (deadLetters > 0)
      parts.push(`${deadLetters} are dead letters now: millrace dead-letters retry --sink ${name} --all`);
    if (deadLetters < records) {
      const which = deadLetters === 0 ? 'to write them again' : `for the other ${records - deadLetters}`;
      parts.push(`${which}: millrace replay journal --to ${name} --since ${since} --until ${until}`);
    }
    this.#troubles.happened(CODE, parts.join('; '), { since: first, lost: records });
  }
}

function isoTime(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : '(unknown)';
}
