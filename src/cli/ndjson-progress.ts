import { formatAmount } from '../lib/amount.ts';
import type { ShapeProgress } from '../ndjson/shape-text.ts';
import { note, type Io } from './io.ts';

/** Milliseconds between two looks at the progress: on a terminal, where a line is written over, and elsewhere. */
const EVERY = { terminal: 200, log: 5000 } as const;

/** Progress of one document, on stderr: bytes, rows, rate and how long it still takes. */
export class NdjsonProgress {
  readonly #io: Io;
  readonly #size: number | null;
  readonly #started = performance.now();
  #shown = performance.now();
  #read = 0;
  #open = false;

  /** @param size of the input in bytes, as it lies on disk; null when it is not known */
  constructor(io: Io, size: number | null) {
    this.#io = io;
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
    const terminal = this.#io.stderr.isTTY === true;
    if (performance.now() - this.#shown < (terminal ? EVERY.terminal : EVERY.log)) return;
    this.#shown = performance.now();
    const line = `${this.#summary(progress)}${this.#left()}`;
    if (terminal) this.#io.stderr.write(`\r\u001b[K${line}`);
    else note(this.#io, line);
    this.#open = terminal;
  }

  /** A line that stays. */
  note(line: string): void {
    if (this.#open) this.#io.stderr.write('\r\u001b[K');
    this.#open = false;
    note(this.#io, line);
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
