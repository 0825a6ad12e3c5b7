import type { LearnedTable } from './write.ts';
import { takeName, snakeCase } from './names.ts';
import { type Budget, Observer } from './observe.ts';
import { propose } from './propose.ts';
import { nameKind } from '../../../core/data-names.ts';

/** Fields that are remembered over all tables; some hundred bytes each. */
const MOST_PLACES = 100_000;
const MOST_GROUPS = 500;
/** Event types named in a comment. */
const MOST_NAMED = 10;

interface Group extends EventGroup {
  readonly observer: Observer;
  readonly types: Map<string, number>;
  /** All events, also those that were not read. */
  events: number;
  /** Events without a document. */
  bare: number;
}

/** Events that became no table, and why. */
export interface NotInferred {
  readonly events: string;
  readonly count: number;
  readonly reason: string;
}

export interface Inferred {
  readonly tables: readonly LearnedTable[];
  readonly without: readonly NotInferred[];
}

export interface InferenceOptions {
  /** Documents that are read for one table. */
  readonly limit: number;
  /** Names of existing tables. */
  readonly taken: ReadonlySet<string>;
}

/** Learns table definitions from the documents of events, in bounded memory. */
export class Inference {
  readonly #options: InferenceOptions;
  readonly #budget: Budget = { left: MOST_PLACES };
  readonly #groups = new Map<string, Group>();
  #others = 0;

  constructor(options: InferenceOptions) {
    this.#options = options;
  }

  /** @param document called only if the document is read; null when the event has none */
  add(type: string, document: () => Buffer | null): void {
    const group = this.#group(type);
    if (group === null) return;
    group.events += 1;
    if (group.types.has(type) || (group.isNamed && group.types.size < MOST_NAMED))
      group.types.set(type, (group.types.get(type) ?? 0) + 1);
    if (group.events > this.#options.limit) return;
    const found = document();
    if (found === null) group.bare += 1;
    else group.observer.add(found);
  }

  /** @param isTaken true when events whose types begin so have a table, from which a new one would take them */
  finish(isTaken: (beginning: string) => boolean = () => false): Inferred {
    const taken = new Set(this.#options.taken);
    const tables: LearnedTable[] = [];
    const without: NotInferred[] = [];
    const groups = [...this.#groups.values()].sort((a, b) => (a.prefix < b.prefix ? -1 : 1));
    for (const group of groups) {
      const reason =
        lackOf(group) ?? (isTaken(group.prefix) ? 'a table takes other events of these types' : null);
      if (reason !== null) {
        without.push({ events: group.prefix, count: group.events, reason });
        continue;
      }
      const free = group.names.find((name) => !taken.has(name)) ?? group.names[1];
      const { name, note, ...rest } = propose(takeName(free, taken), group.observer.root, taken);
      const types = [...group.types].map(([type, count]) => `${type} ${count}`);
      const broken = group.observer.unreadable + group.bare;
      const notes = [[`${group.events} events`, ...types].join(', '), note ?? ''];
      if (broken > 0) notes.push(`${broken} without a document that can be read`);
      tables.push({ name, note: notes.join('; '), events: [group.prefix], ...rest });
    }
    if (this.#others > 0)
      without.push({
        events: '',
        count: this.#others,
        reason: `types that look like data, or more than ${MOST_GROUPS} of them`,
      });
    return { tables, without };
  }

  #group(type: string): Group | null {
    const group = groupOf(type);
    const known = this.#groups.get(group?.prefix ?? '');
    if (known !== undefined) return known;
    if (group === null || this.#groups.size >= MOST_GROUPS) {
      this.#others += 1;
      return null;
    }
    const made = { ...group, observer: new Observer(this.#budget), types: new Map(), events: 0, bare: 0 };
    this.#groups.set(group.prefix, made);
    return made;
  }
}

/** Why documents make no table; null when they do. */
function lackOf({ observer: { root }, bare, events }: Group): string | null {
  const { object, array } = root.kinds;
  if (root.seen === 0) return bare === events ? 'no data' : 'no data that can be read';
  const items = array > object ? root.items : root;
  if (items === null) return 'nothing but empty arrays';
  return items.kinds.object === 0 ? 'neither an object nor an array of objects' : null;
}

/** Ends of types that say what happened to the same document. */
const VERBS = new Set(['created', 'updated', 'changed', 'deleted']);

/** Events that become one table. */
interface EventGroup {
  /** Beginning of their types. */
  readonly prefix: string;
  /** The table's name, short and long; the first that is not taken is used. */
  readonly names: readonly [string, string];
  /** False for types with ids in them, which are not shown. */
  readonly isNamed: boolean;
}

/** The group of an event type: `daily.data.sleep.created` is in `daily.data.sleep.`, table `sleep`. Null for a type that begins with data. */
function groupOf(type: string): EventGroup | null {
  const all = type.split('.');
  const data = all.findIndex((segment) => nameKind(segment) === 'data');
  if (data === 0) return null;
  const hasVerb = all.length > 1 && VERBS.has(all.at(-1) ?? '');
  const segments = data > 0 ? all.slice(0, data) : hasVerb ? all.slice(0, -1) : all;
  const isDaily = segments[0] === 'daily' && segments[1] === 'data' && segments.length > 2;
  return {
    prefix: segments.length < all.length ? `${segments.join('.')}.` : type,
    names: [snakeCase(segments.slice(isDaily ? 2 : 0).join('_')), snakeCase(segments.join('_'))],
    isNamed: data === -1,
  };
}
