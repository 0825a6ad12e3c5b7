import { MillraceError } from '../core/errors.ts';

/** A document under its shelf and id; null deletes it. */
export interface Change {
  readonly shelf: string;
  readonly id: string;
  readonly document: string | null;
}

/** Where a state is kept. */
export interface Store {
  readonly name: string;
  /** In the order in which their ids were first written. */
  read(shelf: string): readonly { readonly id: string; readonly document: string }[];
  /** All of them, or none. */
  write(changes: readonly Change[]): void;
  close(): void;
}

/** How things of one kind are written down, where they are more than JSON. A null that is loaded is deleted. */
interface Form<T, Saved> {
  dump(thing: T): Saved;
  load(saved: Saved): T | null;
}

/** Things of one kind by their ids. Who changes a thing puts it again. */
export class Shelf<T> {
  readonly #things: Map<string, T>;
  readonly #onChange: (id: string, thing: T | null) => void;

  constructor(onChange: (id: string, thing: T | null) => void, things: Iterable<readonly [string, T]> = []) {
    this.#onChange = onChange;
    this.#things = new Map(things);
  }

  get(id: string | number): T | undefined {
    return this.#things.get(String(id));
  }

  put(id: string | number, thing: T): void {
    this.#things.set(String(id), thing);
    this.#onChange(String(id), thing);
  }

  delete(id: string | number): void {
    if (this.#things.delete(String(id))) this.#onChange(String(id), null);
  }

  /** In the order in which their ids were first put. */
  all(): T[] {
    return [...this.#things.values()];
  }
}

/**
 * What a stand-in knows beside what follows from its seed: in memory, and in a store if there is one. Everything that was
 * put since the last `commit` is kept together, or not at all.
 */
export class State {
  /** Sandbox time of an earlier run's last commit, milliseconds since the epoch; null when nothing is kept. */
  readonly time: number | null;
  readonly #store: Store | null;
  readonly #clock: Shelf<number>;
  readonly #series: Shelf<readonly [name: string, last: number]>;
  /** Since the last commit, by shelf and id. */
  readonly #pending = new Map<string, Change>();
  #closed = false;

  constructor(store: Store | null) {
    this.#store = store;
    this.#clock = this.shelf('clock');
    this.#series = this.shelf('series');
    this.time = this.#clock.get('') ?? null;
  }

  shelf<T, Saved = T>(name: string, form?: Form<T, Saved>): Shelf<T> {
    if (this.#store === null) return new Shelf(() => undefined);
    const change = (id: string, thing: T | null): void => {
      const saved = thing === null || form === undefined ? thing : form.dump(thing);
      const document = thing === null ? null : JSON.stringify(saved);
      this.#pending.set(`${name} ${id}`, { shelf: name, id, document });
    };
    const things: [string, T][] = [];
    for (const { id, document } of this.#store.read(name)) {
      const saved = JSON.parse(document) as Saved;
      const thing = form === undefined ? (saved as unknown as T) : form.load(saved);
      if (thing === null) change(id, null);
      else things.push([id, thing]);
    }
    return new Shelf(change, things);
  }

  /** The next number of a series, from 1. None is given twice, whatever was deleted since. */
  next(series: string): number {
    const number = (this.#series.get(series)?.[1] ?? 0) + 1;
    this.#series.put(series, [series, number]);
    return number;
  }

  /**
   * Says what the data is made from, the first time for good.
   * @throws MillraceError usage when the earlier run made it from something else
   */
  claim(origin: Readonly<Record<string, string>>): void {
    const shelf = this.shelf<Readonly<Record<string, string>>>('origin');
    const known = shelf.get('') ?? origin;
    shelf.put('', known);
    const other = Object.keys(origin).filter((name) => origin[name] !== known[name]);
    if (other.length === 0) return;
    const told = other.map((name) => `${name} ${known[name] ?? '(none)'}, not ${origin[name] ?? '(none)'}`);
    throw new MillraceError(
      'usage',
      `the state in ${this.#store?.name ?? ''} was created with ${told.join('; ')}`,
    );
  }

  /** @param now sandbox time */
  commit(now: number): void {
    // A broker can confirm what was on its way when all has ended: then it is sent again, which is allowed.
    if (this.#pending.size === 0 || this.#closed) return;
    this.#clock.put('', now);
    this.#store?.write([...this.#pending.values()]);
    this.#pending.clear();
  }

  /** @param now sandbox time of an orderly end, which the next run begins with; null when nothing began */
  close(now: number | null): void {
    try {
      if (now !== null) {
        this.#clock.put('', now);
        this.commit(now);
      }
    } finally {
      this.#closed = true;
      this.#store?.close();
    }
  }
}
