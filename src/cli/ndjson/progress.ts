import { formatAmount } from '../../lib/amount.ts';
import type { ShapeProgress } from '../../ndjson/shape-text.ts';
import type { Io } from '../io.ts';
import { StatusLine } from '../status-line.ts';

/** Progress of one document, on stderr: bytes, rows, rate and how long it still takes. */
export class NdjsonProgress {
  readonly #line: StatusLine;
  readonly #size: number | null;
  readonly #started = performance.now();
  #read = 0;

  /** @param size of the input in bytes, as it lies on disk; null when it is not known */
  constructor(io: Io, size: number | null) {
    this.#line = new StatusLine(io);
    this.#size = size;
  }

  /** Counts what is read of the input. */
  async *counted(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      this.#read += chunk.length;
      yield chunk;
    }
  }

  show(progress: ShapeProgress): void {
    this.#line.show(() => `${this.#summary(progress)}${this.#left()}`);
  }

  /** A line that stays. */
  note(line: string): void {
    this.#line.note(line);
  }

  end(progress: ShapeProgress): void {
    this.note(this.#summary(progress));
  }

  #summary({ bytes, rows, rejects }: ShapeProgress): string {
    const seconds = this.#seconds();
    const counts = Object.entries(rows).map(([table, count]) => `${count} ${table}`);
    if (rejects > 0) counts.push(`${rejects} rejected`);
    return `${formatAmount(bytes)}, ${counts.join(', ')}, ${formatAmount(bytes / seconds)}/s`;
  }

  #left(): string {
    if (this.#size === null || this.#read === 0) return '';
    const left = ((this.#size - this.#read) / this.#read) * this.#seconds();
    return `, ${Math.round((this.#read / this.#size) * 100)} %, ${Math.ceil(left)} s left`;
  }

  #seconds(): number {
    return Math.max(performance.now() - this.#started, 1) / 1000;
  }
}
