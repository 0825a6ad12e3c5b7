import { NAMED } from './report.ts';

/** The state of an event at a sink, by the journal; of two, the later one in this list counts. */
const STATES = ['settled', 'waiting'] as const;
export type State = (typeof STATES)[number];

/** Why an event that a sink does not have is not lost. */
export type Mark = 'dead' | 'dropped' | 'quarantined';

/** Number of slots of times of receipt: a bit each in one number, and prime, so that whole seconds differ. */
export const SLOTS = 29;

/** What the journal or a file says of an event. */
export type Statement =
  /** The journal has it. A retried event is in the journal twice; two received with one id are two events. */
  | {
      readonly kind: 'event';
      /** Whether the journal may have it twice. */
      readonly mayRepeat: boolean;
      /** The same as of its record in the files. */
      readonly slot: number;
      readonly due: readonly (readonly [sink: number, state: State])[];
    }
  /** A record in the files. */
  | { readonly kind: 'found'; readonly sink: number; readonly slot: number }
  /** `sink` is null for every sink. */
  | { readonly kind: 'mark'; readonly sink: number | null; readonly mark: Mark }
  /** It was received after the journal was read. */
  | { readonly kind: 'late' };

/** What is known of the current id at one sink. */
interface SinkFacts {
  /** Index in `STATES`; -1 when the event is not for this sink. */
  state: number;
  records: number;
  /** A bit for each slot of its records. */
  slots: number;
  /** A bit for each slot of its settled events. */
  due: number;
  mark: Mark | null;
}

const NO_FACTS: Readonly<SinkFacts> = { state: -1, records: 0, slots: 0, due: 0, mark: null };

/** What the journal has of the current id. */
interface JournalFacts {
  /** Number of events with this id. */
  readonly held: number;
  readonly isLate: boolean;
  /** The mark for every sink. */
  readonly every: Mark | null;
}

/** Counts the events of one sink by their state, each once. */
export class SinkIds {
  /** In the files and in the journal. */
  found = 0;
  /** In the files and no longer in the journal. An event accepted twice counts twice. */
  onlyFound = 0;
  /** Further records of the same event. */
  copies = 0;
  dead = 0;
  dropped = 0;
  quarantined = 0;
  waiting = 0;
  /** Settled by the journal, and none of the above. */
  settled = 0;
  /** Not for this sink, by the routes they were accepted under. */
  elsewhere = 0;
  /** Dead letters in neither journal nor files. */
  deadAlone = 0;
  /** Dropped events in neither journal nor files. */
  droppedAlone = 0;
  /** The first ids of `settled`. */
  readonly missing: string[] = [];
  /** The first ids of `onlyFound`. */
  readonly alone: string[] = [];

  count(id: string, { state, records, slots, due, mark }: SinkFacts, journal: JournalFacts): void {
    const { held, isLate, every } = journal;
    // An event accepted again after the dedup window has another time; a copy of a record has the same.
    const more = isLate ? 0 : Math.max(0, bitsIn(slots) - held);
    // Of several events with one id, a copy of one does not count for another.
    const absent = Math.max(0, held - records, held > 1 ? bitsIn(due & ~slots) : 0);
    this.copies += Math.max(0, records - Math.max(1, held - absent + more));
    this.onlyFound += more;
    if (held === 0) {
      if (records > 0) {
        if (!isLate) nameIn(this.alone, id);
      } else if (mark === 'dead') this.deadAlone += 1;
      else if (mark === 'dropped') this.droppedAlone += 1;
      return;
    }
    this.found += held - absent;
    const what = state === -1 || absent === 0 ? undefined : (mark ?? every ?? STATES[state]);
    if (what !== undefined) this[what] += absent;
    if (what === 'settled') nameIn(this.missing, id);
    if (state === -1 && records === 0) this.elsewhere += held;
  }
}

export interface IdCounts {
  /** Events of the journal. */
  readonly events: number;
  /** Dropped for every sink, and no longer in the journal. */
  readonly droppedForAll: number;
  readonly sinks: ReadonlyMap<string, Readonly<SinkIds>>;
}

/** Counts events id by id, in the order of their ids. */
export class IdCounter {
  #events = 0;
  #droppedForAll = 0;
  readonly #statements: readonly Statement[];
  readonly #facts: readonly SinkFacts[];
  readonly #sinks: ReadonlyMap<string, { readonly facts: SinkFacts; readonly ids: SinkIds }>;

  constructor(
    sinks: readonly (readonly [name: string, number: number])[],
    sinkCount: number,
    statements: readonly Statement[],
  ) {
    this.#statements = statements;
    this.#facts = Array.from({ length: sinkCount }, () => ({ ...NO_FACTS }));
    this.#sinks = new Map(
      sinks.map(([name, number]) => [
        name,
        { facts: this.#facts[number] ?? { ...NO_FACTS }, ids: new SinkIds() },
      ]),
    );
  }

  /** @param numbers of the statements about this id, in order */
  count(id: string, numbers: readonly number[]): void {
    let held = 0;
    let isLate = false;
    let every: Mark | null = null;
    let drops = 0;
    for (const facts of this.#facts) Object.assign(facts, NO_FACTS);
    for (const number of numbers) {
      const said = this.#statements[number];
      if (said === undefined) continue;
      if (said.kind === 'event') {
        const isAnother = held === 0 || !said.mayRepeat;
        if (isAnother) held += 1;
        // A retried event waits while one of its two waits.
        for (const [sink, state] of said.due) {
          const facts = this.#facts[sink];
          if (facts === undefined) continue;
          facts.state = Math.max(facts.state, STATES.indexOf(state));
          if (isAnother && state === 'settled') facts.due |= 1 << said.slot;
        }
      } else if (said.kind === 'late') isLate = true;
      else {
        const facts = said.sink === null ? undefined : this.#facts[said.sink];
        if (said.kind === 'mark') {
          if (facts !== undefined) facts.mark ??= said.mark;
          else {
            every ??= said.mark;
            if (said.mark === 'dropped') drops += 1;
          }
        } else if (facts !== undefined) {
          facts.records += 1;
          facts.slots |= 1 << said.slot;
        }
      }
    }
    this.#events += held;
    if (held === 0) this.#droppedForAll += drops;
    for (const { facts, ids } of this.#sinks.values()) ids.count(id, facts, { held, isLate, every });
  }

  counts(): IdCounts {
    const sinks = new Map(Array.from(this.#sinks, ([name, { ids }]) => [name, ids]));
    return { events: this.#events, droppedForAll: this.#droppedForAll, sinks };
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
