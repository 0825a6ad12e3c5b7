import { EarlySource } from './read-ahead.ts';

export interface FetchAheadOptions {
  readonly open: (name: string) => AsyncIterable<Buffer>;
  /** Sources fetched at the same time before they are read. */
  readonly width: number;
  /** Bytes of each that may wait, roughly. */
  readonly most: number;
}

/**
 * Begins to fetch sources before they are read, so that many small remote ones do not cost a round trip each. Other sources, and
 * another order, work as without it.
 */
export class FetchAhead {
  readonly #options: FetchAheadOptions;
  readonly #stop = new AbortController();
  readonly #begun = new Map<string, Early>();
  /** In the order in which they will be read. */
  readonly #next = new Set<string>();

  constructor(options: FetchAheadOptions) {
    this.#options = options;
  }

  /** Adds names that will be read, behind those expected before. */
  expect(names: Iterable<string>): void {
    for (const name of names) if (!this.#begun.has(name)) this.#next.add(name);
    this.#fill();
  }

  /** The bytes of a source. */
  async *read(name: string): AsyncGenerator<Buffer> {
    const early = this.#begun.get(name);
    this.#begun.delete(name);
    this.#next.delete(name);
    this.#fill();
    if (early === undefined) {
      yield* this.#options.open(name);
      return;
    }
    try {
      yield* early.source.items();
    } finally {
      await early.end();
    }
  }

  /** Ends the sources that were not read. */
  async close(): Promise<void> {
    this.#next.clear();
    const begun = [...this.#begun.values()];
    this.#begun.clear();
    this.#stop.abort();
    await Promise.all(begun.map((early) => early.end()));
  }

  #fill(): void {
    const { open, width, most } = this.#options;
    for (const name of this.#next) {
      if (this.#begun.size >= width || this.#stop.signal.aborted) return;
      this.#next.delete(name);
      this.#begun.set(name, new Early(open(name), most, this.#stop.signal));
    }
  }
}

class Early {
  readonly source: EarlySource<Buffer>;
  readonly #own = new AbortController();

  constructor(bytes: AsyncIterable<Buffer>, most: number, stop: AbortSignal) {
    const signal = AbortSignal.any([this.#own.signal, stop]);
    this.source = new EarlySource(bytes, { most, weightOf: (chunk) => chunk.length }, signal);
    // The reader gets the error.
    this.source.closed.catch(() => undefined);
  }

  async end(): Promise<void> {
    this.#own.abort();
    await this.source.closed.catch(() => undefined);
  }
}
