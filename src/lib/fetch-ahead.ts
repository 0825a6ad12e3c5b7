import { EarlySource } from './read-ahead.ts';

export interface FetchAheadOptions {
  readonly open: (name: string) => AsyncIterable<Buffer>;
  /** Sources that are fetched at once before anybody has asked for them. */
  readonly width: number;
  /** Bytes that may wait of each, about. */
  readonly most: number;
}

/**
 * Begins to fetch what will be asked for, so that many small things that are far away do not cost a way there and back each.
 * Asking in another order, or for something else, is as good as asking without it.
 */
export class FetchAhead {
  readonly #options: FetchAheadOptions;
  readonly #stop = new AbortController();
  readonly #begun = new Map<string, Early>();
  /** In the order in which they will be asked for. */
  readonly #next = new Set<string>();

  constructor(options: FetchAheadOptions) {
    this.#options = options;
  }

  /** What is read next. What was expected before and is not begun comes first. */
  expect(names: Iterable<string>): void {
    for (const name of names) if (!this.#begun.has(name)) this.#next.add(name);
    this.#fill();
  }

  /** Its bytes, from the first. */
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

  /** Ends what nobody has asked for. */
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
    // Whoever asks for it is told.
    this.source.closed.catch(() => undefined);
  }

  async end(): Promise<void> {
    this.#own.abort();
    await this.source.closed.catch(() => undefined);
  }
}
