import { parseHead } from '../core/archive-record.ts';
import { isSealed, parseSealed, SEALED_TYPE } from '../core/sealed-record.ts';

/** What a file holds, as its manifest line says it. Lines that are no records do not count. */
export class Contents {
  records = 0;
  first: string | null = null;
  last: string | null = null;
  readonly #types = new Map<string, number>();

  get types(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#types);
  }

  /** @param line without its line break */
  add(line: Buffer): void {
    const sealed = isSealed(line) ? parseSealed(line) : null;
    const head = sealed === null ? parseHead(line)?.record : null;
    const at = sealed?.received_at ?? head?.received_at;
    if (at === undefined) return;
    const type = head?.event_type ?? SEALED_TYPE;
    this.records += 1;
    this.#types.set(type, (this.#types.get(type) ?? 0) + 1);
    // ISO 8601 in UTC with a fixed number of digits: the order of the texts is the order of the times.
    if (this.first === null || at < this.first) this.first = at;
    if (this.last === null || at > this.last) this.last = at;
  }
}
