/** Cumulative counts. */
export interface Totals {
  readonly accepted: number;
  readonly refused: number;
  readonly quarantined: number;
  readonly sinks: readonly { readonly sink: string; readonly delivered: number; readonly backlog: number }[];
}

/** One second of the history. */
export interface Point {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Events a second. */
  readonly accepted: number;
  readonly refused: number;
  readonly quarantined: number;
  /** By sink: deliveries a second, and waiting events. */
  readonly sinks: Readonly<Record<string, { readonly delivered: number; readonly backlog: number }>>;
}

/** Seconds that are kept. */
const LENGTH = 300;

/** Rates of the last five minutes, second by second, for the charts of the console. */
export class History {
  #points: Point[] = [];
  #last: { readonly at: number; readonly totals: Totals };

  constructor(at: number, totals: Totals) {
    this.#last = { at, totals };
  }

  /** @param at milliseconds since the epoch */
  sample(at: number, totals: Totals): void {
    const seconds = (at - this.#last.at) / 1000;
    // The wall clock was set back: points of the future are removed.
    if (seconds <= 0) {
      this.#points = this.#points.filter((point) => point.at <= at);
      this.#last = { at, totals };
      return;
    }
    const before = this.#last.totals;
    const rate = (now: number, then: number): number => Math.round((increase(now, then) / seconds) * 10) / 10;
    this.#points.push({
      at,
      accepted: rate(totals.accepted, before.accepted),
      refused: rate(totals.refused, before.refused),
      quarantined: rate(totals.quarantined, before.quarantined),
      sinks: Object.fromEntries(
        totals.sinks.map(({ sink, delivered, backlog }) => {
          const then = before.sinks.find((other) => other.sink === sink)?.delivered ?? 0;
          return [sink, { delivered: rate(delivered, then), backlog }];
        }),
      ),
    });
    if (this.#points.length > LENGTH) this.#points.shift();
    this.#last = { at, totals };
  }

  /** Oldest first. */
  after(at: number): readonly Point[] {
    const first = this.#points.findIndex((point) => point.at > at);
    return first === -1 ? [] : this.#points.slice(first);
  }
}

/** A smaller count has started again at 0: a reload replaced the sink. */
function increase(now: number, then: number): number {
  return now < then ? now : now - then;
}
