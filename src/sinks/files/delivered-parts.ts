import { messageOf } from '../../core/errors.ts';
import type { SinkContext, SinkTrouble } from '../../core/sink.ts';
import type { Part } from './part.ts';
import { SHOWN } from './troubles.ts';

/** Code of the dead letters, and of the trouble. */
const CODE = 'file_lost';
const NOTHING = { files: 0, records: 0, letters: 0, from: Infinity, to: -Infinity };

/**
 * Parts that have disappeared with records that had counted as delivered. What is not there must not count: each record
 * becomes a dead letter, as far as the journal holds it, and the rest is reported with its span of time.
 */
export class Losses {
  readonly #context: SinkContext;
  /** Parts whose records could not be taken back yet. */
  readonly #owed = new Set<Part>();
  #total = { ...NOTHING, since: 0, last: 0, path: '' };

  constructor(context: SinkContext) {
    this.#context = context;
  }

  async add(part: Part, why: string): Promise<void> {
    const { records, firstReceivedAt, lastReceivedAt } = part.stats;
    if (records === 0) return;
    const { log, clock } = this.#context;
    const now = clock.now();
    if (this.#total.files === 0 || now - this.#total.last >= SHOWN)
      this.#total = { ...NOTHING, since: now, last: now, path: part.path };
    const total = this.#total;
    total.files += 1;
    total.records += records;
    total.from = Math.min(total.from, firstReceivedAt);
    total.to = Math.max(total.to, lastReceivedAt);
    total.last = now;
    log.error({ path: part.path, records, why }, 'an unfinished archive file disappeared');
    this.#owed.add(part);
    await this.settle();
  }

  /** Takes back what could not be taken back before. Never rejects. */
  async settle(): Promise<void> {
    const { takeBack, log } = this.#context;
    for (const part of this.#owed) {
      this.#owed.delete(part);
      if (takeBack === undefined) continue;
      const reason = `${part.path} disappeared before it was closed`;
      try {
        const { destination, seqs } = part;
        this.#total.letters += await takeBack({ seqs: seqs.all(), destination, code: CODE, reason });
      } catch (error) {
        this.#owed.add(part);
        log.error({ path: part.path, error: messageOf(error) }, 'its records could not become dead letters');
        return;
      }
    }
  }

  troubles(): SinkTrouble[] {
    const { files, records, since, last } = this.#total;
    if (files === 0 || this.#context.clock.now() - last >= SHOWN) return [];
    return [{ code: CODE, detail: this.#detail(), since, lost: records }];
  }

  #detail(): string {
    const { files, records, letters, from, to, path } = this.#total;
    const { name } = this.#context;
    const [since, until] = [isoTime(from), isoTime(to + 1)];
    const what = files === 1 ? `the unfinished file ${path}` : `${files} unfinished files, ${path} first`;
    const parts = [
      `${records} delivered records, received from ${since} to ${until}, were lost with ${what}`,
    ];
    if (letters > 0)
      parts.push(`${letters} are dead letters now: millrace dead-letters retry --sink ${name} --all`);
    if (letters < records) {
      const which = letters === 0 ? 'to write them again' : `for the other ${records - letters}`;
      parts.push(`${which}: millrace replay journal --to ${name} --since ${since} --until ${until}`);
    }
    return parts.join('; ');
  }
}

function isoTime(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : '(unknown)';
}
