import { resolve } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import { getOrMakeAtMost } from '../lib/get-or-make.ts';
import { nearest } from '../lib/nearest.ts';
import { columnsOf, EVENT_IDS, type TableDefinition } from './definition.ts';
import * as activity from './definitions/activity.ts';
import * as appointments from './definitions/appointments.ts';
import * as body from './definitions/body.ts';
import { EVENTS } from './definitions/events.ts';
import { LAB_TESTS } from './definitions/lab-tests.ts';
import * as labs from './definitions/labs.ts';
import { MEALS } from './definitions/meals.ts';
import { ORDERS } from './definitions/orders.ts';
import * as providers from './definitions/providers.ts';
import { SAMPLES } from './definitions/timeseries.ts';
import * as users from './definitions/users.ts';
import { eventColumnsOf, keyOf, rowKeyOf, versionOf } from './sql/identity.ts';

/** Documents that become rows, each with the tables nested in it. */
const DOCUMENTS = [
  EVENTS,
  SAMPLES,
  body.SLEEP,
  body.SLEEP_CYCLES,
  activity.ACTIVITY,
  activity.WORKOUTS,
  activity.WORKOUT_STREAMS,
  body.BODY,
  body.PROFILES,
  body.MENSTRUAL_CYCLES,
  body.ELECTROCARDIOGRAMS,
  MEALS,
  labs.MARKERS,
  LAB_TESTS,
  labs.LAB_ACCOUNTS,
  labs.AREAS,
  users.USERS,
  users.INSURANCE,
  ORDERS,
  labs.PARSING_JOBS,
  providers.BULK_OPS,
  providers.HISTORICAL_PULLS,
  providers.HISTORICAL_COMPLETIONS,
  providers.PROVIDER_CONNECTIONS,
  providers.PROVIDER_CONNECTION_ERRORS,
  providers.PROVIDER_DEVICES,
  appointments.APPOINTMENTS,
  appointments.LAB_RESULTS,
  appointments.MATCH_REVIEWS,
  providers.CONTINUOUS_QUERY_RESULTS,
];

/** A table and the document that its rows are made of. */
export interface TableEntry {
  readonly definition: TableDefinition;
  /** The table whose documents it is shaped from: itself, or the one it is nested in. */
  readonly document: TableDefinition;
}

/** Columns by which a whole pull covers a row. */
const COVERED_BY = ['resource', 'calendar_date', 'timestamp', 'start_time', 'source_provider', 'source_slug'];

/** Event types whose documents are remembered, so that a sender of ever new types cannot fill the memory. */
const MOST_TYPES = 10_000;

/** The tables there are, by name; nested ones after the one they are nested in. */
export class Tables {
  /** All tables are made of these, or nested in one. */
  readonly documents: readonly TableDefinition[];
  readonly #entries: ReadonlyMap<string, TableEntry>;
  readonly #byType = new Map<string, readonly TableDefinition[]>();

  /** @throws TypeError when two tables have the same name */
  constructor(documents: readonly TableDefinition[]) {
    this.documents = documents;
    const entries = new Map<string, TableEntry>();
    for (const document of documents) {
      const own = document.ownRows === false ? [] : [document];
      for (const definition of [...own, ...(document.nested ?? []).map(({ table }) => table)]) {
        if (entries.has(definition.name)) throw new TypeError(`there are two tables ${definition.name}`);
        entries.set(definition.name, { definition, document });
      }
    }
    this.#entries = entries;
  }

  /** These tables and more. @throws TypeError as the constructor does */
  with(documents: readonly TableDefinition[]): Tables {
    return new Tables([...this.documents, ...documents]);
  }

  /**
   * These tables, of which one has only some of its columns, and no nested tables. It keeps what identifies a row and its version, what
   * every row of an event has, and what tells which pull covers it.
   * @throws TypeError for a column that the table has not
   */
  withColumns(table: string, names: readonly string[]): Tables {
    const { definition, document } = this.entry(table);
    const known = columnsOf(definition).map(({ name }) => name);
    const unknown = names.find((name) => !known.includes(name));
    if (unknown !== undefined) {
      const near = nearest(unknown, known);
      throw new TypeError(
        `${table} has no column ${unknown}${near === undefined ? '' : `; there is ${near}`}`,
      );
    }
    const event = Object.values(eventColumnsOf(definition) ?? {});
    const system = known.filter((name) => name.startsWith('_') || EVENT_IDS.has(name));
    const version = versionOf(definition, document) ?? '';
    const key = [...rowKeyOf(definition), ...keyOf(definition), version];
    const kept = new Set([...names, ...key, ...event, ...system, ...COVERED_BY]);
    const narrow = { ...definition, only: known.filter((name) => kept.has(name)) };
    const nested = document.nested?.map((one) =>
      one.table === definition ? { ...one, table: narrow } : one,
    );
    const around = definition === document ? narrow : { ...document, ...(nested && { nested }) };
    return new Tables(this.documents.map((one) => (one === document ? around : one)));
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

  /** Names of a table and of those nested in it. */
  withNested(name: string): string[] {
    const { definition, document } = this.#entries.get(name) ?? {};
    const nested = definition === document && definition?.only === undefined ? (document?.nested ?? []) : [];
    return [name, ...nested.map(({ table }) => table.name)];
  }

  ofEvents(): TableEntry[] {
    return [...this.values()].filter(({ definition }) => definition.events !== undefined);
  }

  /** True when events of this type carry documents of the table, as far as the type can tell. */
  takes({ document }: TableEntry, eventType: string): boolean {
    return document.events?.member === null || this.documentsOf(eventType).includes(document);
  }

  /** What the `data` of events of this type is a document of: the definitions that name most of the type. */
  documentsOf(eventType: string): readonly TableDefinition[] {
    return getOrMakeAtMost(this.#byType, eventType, () => this.#namedBy(eventType), MOST_TYPES);
  }

  #namedBy(eventType: string): TableDefinition[] {
    const lengths = this.documents.map(({ events }) => {
      const types = events?.member === 'data' ? events.types : [];
      return Math.max(0, ...types.filter((type) => eventType.startsWith(type)).map(({ length }) => length));
    });
    const longest = Math.max(...lengths);
    return longest === 0 ? [] : this.documents.filter((_, at) => lengths[at] === longest);
  }
}

/** The tables that come with the program. */
export const TABLES = new Tables(DOCUMENTS);

/**
 * The built-in tables, and those of definition files; a file that is named twice counts once.
 * @throws MillraceError tables_invalid
 */
export async function tablesWith(files: readonly string[]): Promise<Tables> {
  if (files.length === 0) return TABLES;
  // The reader of YAML takes as long to load as the rest of a command.
  const { readTables } = await import('./learned/read-tables.ts');
  const once = new Map(files.map((file) => [resolve(file), file]));
  return [...once.values()].reduce((tables, file) => {
    try {
      return tables.with(readTables(file));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new MillraceError('tables_invalid', `${file}: ${messageOf(error)}`, { cause: error });
    }
  }, TABLES);
}
