import { Bell } from './bell.ts';

interface Limits<T> {
  /** A source pauses when its waiting items have this weight. */
  readonly most: number;
  readonly weightOf: (item: T) => number;
}

export interface ReadAhead<S, T> extends Limits<T> {
  readonly open: (source: S) => AsyncIterable<T>;
  /** True when the source may be read before its turn. */
  readonly isEarly: (source: S) => boolean;
  /** Sources open at the same time, the current one included. */
  readonly width: number;
}

/**
 * Yields sources in order while it reads the next ones. Items and their order are the same as without it, and an error of a source is
 * thrown after its last item. When the caller stops, every source is closed.
 */
export async function* readAhead<S, T>(
  sources: AsyncIterable<S> | Iterable<S>,
  { open, isEarly, width, ...limits }: ReadAhead<S, T>,
): AsyncGenerator<readonly [source: S, items: AsyncIterable<T>]> {
  const stop = new AbortController();
  const reading = new Set<Promise<void>>();
  const begin = (source: S): AsyncIterable<T> => {
    const items = open(source);
    if (!isEarly(source)) return items;
    const early = new EarlySource(items, limits, stop.signal);
    const closed = early.closed.catch(() => undefined).then(() => void reading.delete(closed));
    reading.add(closed);
    return early.items();
  };
  const begun: (readonly [S, AsyncIterable<T>])[] = [];
  try {
    for await (const source of sources) {
      begun.push([source, begin(source)]);
      if (begun.length === width) yield* begun.splice(0, 1);
    }
    yield* begun;
  } finally {
    stop.abort();
    await Promise.all(reading);
  }
}

/** A source that is read before its items are asked for. */
export class EarlySource<T> {
  /** Settles when the source is closed; rejects with its error. */
  readonly closed: Promise<void>;
  readonly #limits: Limits<T>;
  readonly #stop: AbortSignal;
  readonly #bell = new Bell();
  readonly #waiting: T[] = [];
  #weight = 0;
  #isRead = false;

  constructor(source: AsyncIterable<T>, limits: Limits<T>, stop: AbortSignal) {
    this.#limits = limits;
    this.#stop = stop;
    this.closed = this.#read(source);
  }

  async *items(): AsyncGenerator<T> {
    for (;;) {
      await this.#bell.until(() => this.#waiting.length > 0 || this.#isRead, this.#stop);
      const item = this.#waiting.shift();
      if (item === undefined) return await this.closed;
      this.#weight -= this.#limits.weightOf(item);
      this.#bell.ring();
      yield item;
    }
  }

  async #read(source: AsyncIterable<T>): Promise<void> {
    const { most, weightOf } = this.#limits;
    try {
      for await (const item of source) {
        this.#waiting.push(item);
        this.#weight += weightOf(item);
        this.#bell.ring();
        await this.#bell.until(() => this.#weight < most, this.#stop);
        this.#stop.throwIfAborted();
      }
    } finally {
      this.#isRead = true;
      this.#bell.ring();
    }
  }
}

/** Yields the items; `show` gets each of them `count` items before. */
export async function* inSight<T>(
  items: AsyncIterable<T>,
  count: number,
  show: (item: T) => void,
): AsyncGenerator<T> {
  const seen: T[] = [];
  for await (const item of items) {
    show(item);
    seen.push(item);
    if (seen.length > count) yield seen.shift() as T;
  }
  yield* seen;
}
