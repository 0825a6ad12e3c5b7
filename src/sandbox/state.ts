/** Things of one kind, each a JSON document under its id. */
export interface Shelf<T> {
  put(id: string | number, document: T): void;
  delete(id: string | number): void;
  /** In the order in which their ids were first put. */
  all(): Iterable<T>;
}

/**
 * What a stand-in keeps beside what follows from its seed. Things are put as they change; everything that was put since
 * the last `commit` is kept together, or not at all.
 */
export interface State {
  /** Something is kept from an earlier run. */
  readonly resumed: boolean;
  /** Sandbox time of the last commit, milliseconds since the epoch; null when nothing is kept. */
  readonly time: number | null;
  shelf<T>(name: string): Shelf<T>;
  /** The next number of a series, from 1. None is given twice, whatever was deleted since. */
  next(series: string): number;
  /**
   * Says what the data is made from, the first time for good.
   * @throws MillraceError usage when the earlier run made it from something else
   */
  claim(origin: Readonly<Record<string, string>>): void;
  /** @param now sandbox time */
  commit(now: number): void;
  /** @param now sandbox time of an orderly end, which the next run begins with; null when nothing began */
  close(now: number | null): void;
}

const NOTHING: Shelf<never> = { put: () => undefined, delete: () => undefined, all: () => [] };

/** For stand-ins that forget all when they stop: what they know is in their own memory only. */
export function forgetfulState(): State {
  const series = new Map<string, number>();
  return {
    resumed: false,
    time: null,
    shelf: () => NOTHING,
    next: (name) => {
      const number = (series.get(name) ?? 0) + 1;
      series.set(name, number);
      return number;
    },
    claim: () => undefined,
    commit: () => undefined,
    close: () => undefined,
  };
}
