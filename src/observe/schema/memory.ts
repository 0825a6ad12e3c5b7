import { type Ids, typeWithoutData } from '../../core/data-names.ts';
import type { Event } from '../../core/event.ts';
import { TABLES } from '../../tables/tables.ts';
import { documentedMaps } from './documented.ts';
import { SeenField, type Kind } from '../../tables/learned/infer/seen-field.ts';
import { walk } from './walk.ts';

/** Limits of the memory: some megabytes. */
const BOUNDS = {
  types: 500,
  /** Fields of one type, and of all types. */
  fieldsOfType: 1000,
  fields: 20_000,
  /** Fields whose names may be data, which are counted apart until that is known. */
  doubts: 10_000,
};
/** Bytes of a document that are looked at. */
const MOST_BYTES = 1024 * 1024;

const NO_IDS: Ids = { team: null, user: null, clientUser: null };

/** The fields and counts of an event type. */
export interface TypeMemory {
  /** `*` replaces parts that are data, such as ids. */
  readonly type: string;
  readonly root: SeenField;
  readonly maps: ReadonlySet<string>;
  /** Milliseconds since the epoch. */
  readonly first: number;
  last: number;
  /** Events, and how many of them were looked at. */
  seen: number;
  looked: number;
  fields: number;
  /** There were more fields than are remembered. */
  isFull: boolean;
}

/** A new type, a new field, or a new kind of value. */
export interface FirstSeen {
  readonly memory: TypeMemory;
  /** Null for a new type. */
  readonly field: SeenField | null;
  /** For a known field with another kind of value. */
  readonly kind: Kind | null;
}

type LookedAt = Pick<Event, 'type' | 'team' | 'user' | 'clientUser' | 'receivedAt' | 'body'>;

/** Fields, kinds and counts by event type. */
export class SchemaMemory {
  readonly types = new Map<string, TypeMemory>();
  readonly #bounds: typeof BOUNDS;
  readonly #onFirst: (first: FirstSeen) => void;
  /** By the type as it was sent, which saves the check of its parts. */
  readonly #byName = new Map<string, TypeMemory>();
  fields = 0;
  /** There were more types than are remembered. */
  isFull = false;
  /** Doubtful fields since they were last forgotten; see `BOUNDS`. */
  #doubts = 0;

  constructor(onFirst: (first: FirstSeen) => void = () => undefined, bounds: Partial<typeof BOUNDS> = {}) {
    this.#onFirst = onFirst;
    this.#bounds = { ...BOUNDS, ...bounds };
  }

  /** Counts an event. @returns its type; null when there are too many types */
  count(type: string, at: number, ids: Ids): TypeMemory | null {
    const memory = this.#byName.get(type) ?? this.#find(type, at, ids);
    if (memory === null) return null;
    memory.seen += 1;
    memory.last = at;
    return memory;
  }

  /** Looks at an event that was counted. @param bytes looks at no more than these */
  look(memory: TypeMemory, event: LookedAt, bytes = Infinity): void {
    memory.looked += 1;
    if (this.#doubts >= this.#bounds.doubts) this.#forgetDoubts();
    walk(memory.root, {
      nth: memory.looked,
      at: event.receivedAt,
      body: event.body,
      most: Math.min(bytes, MOST_BYTES),
      ids: event,
      maps: memory.maps,
      mayAdd: () => this.#mayAdd(memory),
      mayDoubt: () => (this.#doubts += 1) <= this.#bounds.doubts,
      onFirst: (field, kind) => {
        // A new type is reported without its fields.
        if (memory.looked > 1) this.#onFirst({ memory, field, kind });
      },
      onFolded: (count) => {
        memory.fields -= count;
        this.fields -= count;
      },
    });
  }

  /** Adds a type of a saved memory. */
  restore(memory: TypeMemory): void {
    this.types.set(memory.type, memory);
    this.fields += memory.fields;
  }

  #find(name: string, at: number, ids: Ids): TypeMemory | null {
    const type = withoutData(name, ids);
    const known = this.types.get(type);
    if (known === undefined && this.types.size >= this.#bounds.types) {
      this.isFull = true;
      return null;
    }
    const memory = known ?? newType(type, name, at);
    if (known === undefined) {
      this.types.set(type, memory);
      this.#onFirst({ memory, field: null, kind: null });
    }
    // Not for a name that contains an id of this event: in another event it is no data.
    if (type === withoutData(name, NO_IDS) && this.#byName.size < this.#bounds.types)
      this.#byName.set(name, memory);
    return memory;
  }

  /** Starts counting doubtful fields again: those that are frequent come back soon. */
  #forgetDoubts(): void {
    this.#doubts = 0;
    for (const { root } of this.types.values()) for (const field of root.all()) field.doubts = null;
  }

  #mayAdd(memory: TypeMemory): boolean {
    const { fieldsOfType, fields } = this.#bounds;
    if (memory.fields >= fieldsOfType || this.fields >= fields) {
      memory.isFull = true;
      return false;
    }
    memory.fields += 1;
    this.fields += 1;
    return true;
  }
}

function newType(type: string, name: string, at: number): TypeMemory {
  return {
    type,
    root: new SeenField(null, null, 1, 1, at),
    maps: documentedMaps(name),
    first: at,
    last: at,
    seen: 0,
    looked: 0,
    fields: 0,
    isFull: false,
  };
}

/** Documented types contain no data. */
function withoutData(type: string, ids: Ids): string {
  return TABLES.documentsOf(type).length > 0 ? type : typeWithoutData(type, ids);
}
