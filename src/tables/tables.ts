import { ACTIVITY, WORKOUTS, WORKOUT_STREAMS } from './definitions/activity.ts';
import { APPOINTMENTS, LAB_RESULTS, MATCH_REVIEWS } from './definitions/appointments.ts';
import { AREAS, MARKERS, LAB_ACCOUNTS, PARSING_JOBS } from './definitions/labs.ts';
import {
  BODY,
  ELECTROCARDIOGRAMS,
  MENSTRUAL_CYCLES,
  PROFILES,
  SLEEP,
  SLEEP_CYCLES,
} from './definitions/body.ts';
import { LAB_TESTS } from './definitions/lab-tests.ts';
import { MEALS } from './definitions/meals.ts';
import type { TableDefinition } from './definition.ts';
import { EVENTS } from './definitions/events.ts';
import {
  BULK_OPS,
  HISTORICAL_PULLS,
  CONTINUOUS_QUERY_RESULTS,
  HISTORICAL_COMPLETIONS,
  PROVIDER_CONNECTION_ERRORS,
  PROVIDER_CONNECTIONS,
  PROVIDER_DEVICES,
} from './definitions/providers.ts';
import { ORDERS } from './definitions/orders.ts';
import { SAMPLES } from './definitions/timeseries.ts';
import { INSURANCE, USERS } from './definitions/users.ts';

/** Documents that become rows; each table's nested tables come with it. */
const DOCUMENTS = [
  EVENTS,
  SAMPLES,
  SLEEP,
  SLEEP_CYCLES,
  ACTIVITY,
  WORKOUTS,
  WORKOUT_STREAMS,
  BODY,
  PROFILES,
  MENSTRUAL_CYCLES,
  ELECTROCARDIOGRAMS,
  MEALS,
  MARKERS,
  LAB_TESTS,
  LAB_ACCOUNTS,
  AREAS,
  USERS,
  INSURANCE,
  ORDERS,
  PARSING_JOBS,
  BULK_OPS,
  HISTORICAL_PULLS,
  HISTORICAL_COMPLETIONS,
  PROVIDER_CONNECTIONS,
  PROVIDER_CONNECTION_ERRORS,
  PROVIDER_DEVICES,
  APPOINTMENTS,
  LAB_RESULTS,
  MATCH_REVIEWS,
  CONTINUOUS_QUERY_RESULTS,
];

/** A table as others look it up. */
export interface TableEntry {
  readonly definition: TableDefinition;
  /** The table whose documents it is shaped from: itself, or the one it is nested in. */
  readonly document: TableDefinition;
}

/** Event types that are remembered: whoever sends ever new ones must not fill the memory. */
const MOST_TYPES = 10_000;

/** The tables there are, by name; nested ones after the one they are nested in. */
export class Tables {
  readonly #documents: readonly TableDefinition[];
  readonly #entries: ReadonlyMap<string, TableEntry>;
  readonly #byType = new Map<string, readonly TableDefinition[]>();

  /** @throws TypeError when two tables have the same name */
  constructor(documents: readonly TableDefinition[]) {
    this.#documents = documents;
    const entries = documents.flatMap((document): TableEntry[] => [
      ...(document.ownRows === false ? [] : [{ definition: document, document }]),
      ...(document.nested ?? []).map(({ table }) => ({ definition: table, document })),
    ]);
    this.#entries = new Map(entries.map((entry) => [entry.definition.name, entry]));
    for (const { definition, document } of entries) {
      const { name, events } = definition;
      if (this.#entries.get(name)?.definition !== definition)
        throw new TypeError(`there are two tables ${name}`);
      if (events !== document.events)
        throw new TypeError(`${name} is not made of the events of ${document.name}`);
    }
  }

  /** Documents that become rows; all tables are made of them. */
  get documents(): readonly TableDefinition[] {
    return this.#documents;
  }

  /** These and more. */
  with(documents: readonly TableDefinition[]): Tables {
    return new Tables([...this.#documents, ...documents]);
  }

  get(name: string): TableEntry | undefined {
    return this.#entries.get(name);
  }

  /** @throws TypeError when there is none of this name */
  entry(name: string): TableEntry {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new TypeError(`there is no table ${name}`);
    return entry;
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  keys(): MapIterator<string> {
    return this.#entries.keys();
  }

  values(): MapIterator<TableEntry> {
    return this.#entries.values();
  }

  /** A table and those nested in it. */
  withNested(name: string): string[] {
    const { definition, document } = this.#entries.get(name) ?? {};
    const nested = definition === document ? (document?.nested ?? []) : [];
    return [name, ...nested.map(({ table }) => table.name)];
  }

  /** The tables that are made of events. */
  ofEvents(): TableEntry[] {
    return [...this.values()].filter(({ definition }) => definition.events !== undefined);
  }

  /** True when events of this type carry documents of the table, as far as the type can tell. */
  takes({ document }: TableEntry, eventType: string): boolean {
    return document.events?.member === null || this.documentsOf(eventType).includes(document);
  }

  /** What events of this type are documents of, besides `events`. */
  documentsOf(eventType: string): readonly TableDefinition[] {
    const known = this.#byType.get(eventType);
    if (known !== undefined) return known;
    const named = this.#documents.map(({ events }) =>
      Math.max(
        -1,
        ...(events?.member === 'data' ? events.types : []).map((type) => lengthIn(type, eventType)),
      ),
    );
    const most = Math.max(0, ...named);
    const found = this.#documents.filter((_, at) => named[at] === most);
    if (this.#byType.size < MOST_TYPES) this.#byType.set(eventType, found);
    return found;
  }
}

/** How much of a type a beginning of types names; -1 when the type begins otherwise. */
function lengthIn(beginning: string, eventType: string): number {
  return eventType.startsWith(beginning) ? beginning.length : -1;
}

/** The tables that come with the program. */
export const TABLES = new Tables(DOCUMENTS);
