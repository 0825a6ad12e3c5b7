import { formatAmount } from '../../lib/amount.ts';
import type { ShapeProgress } from '../../ndjson/shape-text.ts';
import type { Io } from '../io.ts';
import { StatusLine } from '../status-line.ts';

/** Progress of one document, on stderr: bytes, rows, rate and how long it still takes. */
export class NdjsonProgress {
  readonly status: StatusLine;
  readonly #size: number | null;
  #read = 0;

  /** @param size of the input in bytes, as it lies on disk; null when it is not known */
  constructor(io: Io, size: number | null) {
    this.status = new StatusLine(io);
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
    this.status.show(() => `${this.#summary(progress)}${this.#left()}`);
  }

  end(progress: ShapeProgress): void {
    this.status.note(this.#summary(progress));
  }

  #summary({ bytes, rows, rejects }: ShapeProgress): string {
    const counts = Object.entries(rows).map(([table, count]) => `${count} ${table}`);
    if (rejects > 0) counts.push(`${rejects} rejected`);
    return `${formatAmount(bytes)}, ${counts.join(', ')}, ${formatAmount(bytes / this.status.seconds)}/s`;
  }

  #left(): string {
    if (this.#size === null || this.#read === 0) return '';
    const left = ((this.#size - this.#read) / this.#read) * this.status.seconds;
    return `, ${Math.round((this.#read / this.#size) * 100)} %, ${Math.ceil(left)} s left`;
  }
}
