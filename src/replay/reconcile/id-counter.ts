import { NAMED } from './report.ts';

/** What the journal says became of one event at one sink; a later one of these stands above an earlier one. */
const STATES = ['settled', 'waiting'] as const;
export type State = (typeof STATES)[number];

/** Why an event is not with a sink, and is not lost. */
export type Mark = 'dead' | 'dropped' | 'quarantined';

/** Slots of times of receipt: they fit into one number. */
export const SLOTS = 30;

/** What is said of an event, by the journal or by files. */
export type Statement =
  /** The journal holds it. One retried for a sink stands there twice; but two that came with one id are two. */
  | {
      readonly kind: 'event';
      /** Whether it may be one that is known. */
      readonly isPutBack: boolean;
      /** That of the record which the files have of it. */
      readonly slot: number;
      readonly due: readonly (readonly [sink: number, state: State])[];
    }
  /** A record in the files; those with the same time of receipt have the same `slot`, and few others have. */
  | { readonly kind: 'found'; readonly sink: number; readonly slot: number }
  /** `sink` is null where it is so for every sink. */
  | { readonly kind: 'mark'; readonly sink: number | null; readonly mark: Mark }
  /** It came in after the journal was read. */
  | { readonly kind: 'late' };

/** Events of one sink by what became of them; each is counted once. */
export interface SinkIds {
  /** In the files, and in the journal. */
  readonly found: number;
  /** In the files, and in the journal no longer. One that was accepted twice counts twice. */
  readonly onlyFound: number;
  /** More than one record of the same event. */
  readonly copies: number;
  readonly dead: number;
  readonly dropped: number;
  readonly quarantined: number;
  readonly waiting: number;
  /** Settled, as the journal has it, and not among the above. */
  readonly settled: number;
  /** Not for this sink, by the routes they were accepted under. */
  readonly elsewhere: number;
  /** Dead letters whose events the journal holds no longer, and which are not in the files; and those dropped. */
  readonly deadAlone: number;
  readonly droppedAlone: number;
  /** The first ids of `settled`, and of `onlyFound`. */
  readonly missing: readonly string[];
  readonly alone: readonly string[];
}

export interface IdCounts {
  /** Events the journal holds. */
  readonly events: number;
  /** Dropped for every sink, and in the journal no longer. */
  readonly droppedForAll: number;
  readonly sinks: ReadonlyMap<string, SinkIds>;
}

/** What has been said of the id at hand for one sink. */
interface Place {
  /** Index in `STATES`; -1 when it is not for this sink. */
  state: number;
  records: number;
  /** A bit for each slot of its records. */
  slots: number;
  /** The same of the settled events that are for this sink. */
  due: number;
  mark: Mark | null;
}

const NOTHING_SAID: Readonly<Place> = { state: -1, records: 0, slots: 0, due: 0, mark: null };

type Counted = Exclude<keyof SinkIds, 'missing' | 'alone'>;
const NONE: Readonly<Record<Counted, number>> = {
  found: 0,
  onlyFound: 0,
  copies: 0,
  dead: 0,
  dropped: 0,
  quarantined: 0,
  waiting: 0,
  settled: 0,
  elsewhere: 0,
  deadAlone: 0,
  droppedAlone: 0,
};

/** Counts events id by id, in the order of their ids. */
export class IdCounter {
  #events = 0;
  #droppedForAll = 0;
  readonly #statements: readonly Statement[];
  readonly #places: readonly Place[];
  readonly #sinks: readonly SinkCounter[];

  constructor(
    sinks: readonly (readonly [name: string, number: number])[],
    places: number,
    statements: readonly Statement[],
  ) {
    this.#statements = statements;
    this.#places = Array.from({ length: places }, () => ({ ...NOTHING_SAID }));
    this.#sinks = sinks.flatMap(([name, number]) => {
      const place = this.#places[number];
      return place === undefined ? [] : [new SinkCounter(name, place)];
    });
  }

  /** @param numbers of all that was said of this id, in the order in which it was */
  count(id: string, numbers: readonly number[]): void {
    let held = 0;
    let isLate = false;
    let every: Mark | null = null;
    let drops = 0;
    for (const place of this.#places) Object.assign(place, NOTHING_SAID);
    for (const number of numbers) {
      const said = this.#statements[number];
      if (said === undefined) continue;
      if (said.kind === 'event') {
        const isAnother = held === 0 || !said.isPutBack;
        if (isAnother) held += 1;
        // One that was retried stands in the journal twice; while one of the two waits, it waits.
        for (const [sink, state] of said.due) {
          const place = this.#places[sink];
          if (place === undefined) continue;
          place.state = Math.max(place.state, STATES.indexOf(state));
          if (isAnother && state === 'settled') place.due |= 1 << said.slot;
        }
      } else if (said.kind === 'late') isLate = true;
      else {
        const place = said.sink === null ? undefined : this.#places[said.sink];
        if (said.kind === 'mark') {
          if (place !== undefined) place.mark ??= said.mark;
          else {
            every ??= said.mark;
            if (said.mark === 'dropped') drops += 1;
          }
        } else if (place !== undefined) {
          place.records += 1;
          place.slots |= 1 << said.slot;
        }
      }
    }
    this.#events += held;
    if (held === 0) this.#droppedForAll += drops;
    for (const sink of this.#sinks) sink.count(id, held, isLate, every);
  }

  counts(): IdCounts {
    const sinks = new Map(this.#sinks.map((sink) => [sink.name, sink.ids()]));
    return { events: this.#events, droppedForAll: this.#droppedForAll, sinks };
  }
}

class SinkCounter {
  readonly name: string;
  readonly #place: Place;
  readonly #n: Record<Counted, number> = { ...NONE };
  readonly #missing: string[] = [];
  readonly #alone: string[] = [];

  constructor(name: string, place: Place) {
    this.name = name;
    this.#place = place;
  }

  /** @param held how many events of this id the journal holds; @param every what is so for every sink */
  count(id: string, held: number, isLate: boolean, every: Mark | null): void {
    const { state, records, slots, due, mark } = this.#place;
    const n = this.#n;
    // What came again after the dedup window was accepted again; a copy of a record has the time of the first.
    const more = isLate ? 0 : Math.max(0, bitsIn(slots) - held);
    // Of several with one id, a copy of one must not stand for another.
    const absent = Math.max(0, held - records, held > 1 ? bitsIn(due & ~slots) : 0);
    n.copies += Math.max(0, records - Math.max(1, held - absent + more));
    n.onlyFound += more;
    if (held === 0) {
      if (records > 0) {
        if (isLate) return;
        nameIn(this.#alone, id);
      } else if (mark === 'dead') n.deadAlone += 1;
      else if (mark === 'dropped') n.droppedAlone += 1;
      return;
    }
    n.found += held - absent;
    const what = state === -1 || absent === 0 ? undefined : (mark ?? every ?? STATES[state]);
    if (what !== undefined) n[what] += absent;
    if (what === 'settled') nameIn(this.#missing, id);
    if (state === -1 && records === 0) n.elsewhere += held;
  }

  ids(): SinkIds {
    return { ...this.#n, missing: this.#missing, alone: this.#alone };
  }
}

function nameIn(ids: string[], id: string): void {
  if (ids.length < NAMED) ids.push(id);
}

function bitsIn(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count += 1;
  return count;
}
