import { type Ids, typeWithoutData } from '../../core/data-names.ts';
import type { Event } from '../../core/event.ts';
import { TABLES } from '../../tables/tables.ts';
import { documentedMaps } from './documented.ts';
import { SeenField, type Kind } from '../../tables/learned/infer/seen-field.ts';
import { walk } from './walk.ts';

/** What is remembered, whatever comes: some megabytes. */
export interface Bounds {
  readonly types: number;
  /** Of one type, and of all of them. */
  readonly fieldsOfType: number;
  readonly fields: number;
  /** Names that may be data, with what stands in them, that are counted beside the fields until it is known. */
  readonly doubts: number;
}

const BOUNDS: Bounds = { types: 500, fieldsOfType: 1000, fields: 20_000, doubts: 10_000 };
/** Of a document no more than so many bytes is looked at. */
const MOST_BYTES = 1024 * 1024;

const NO_IDS: Ids = { team: null, user: null, clientUser: null };

/** What has been seen of the events of a type. */
export interface TypeMemory {
  /** Parts of it that are data, such as ids, are `*`. */
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

/** Something that was never there before. */
export interface FirstSeen {
  readonly memory: TypeMemory;
  /** Null for the type itself. */
  readonly field: SeenField | null;
  /** For a field that was there, as something else. */
  readonly kind: Kind | null;
}

type Looked = Pick<Event, 'type' | 'team' | 'user' | 'clientUser' | 'receivedAt' | 'body'>;

/** What the events of each type have looked like. */
export class SchemaMemory {
  readonly types = new Map<string, TypeMemory>();
  readonly #bounds: Bounds;
  readonly #tell: (first: FirstSeen) => void;
  /** By the type as it came: most need no look at its parts. */
  readonly #byName = new Map<string, TypeMemory>();
  fields = 0;
  /** There were more types than are remembered. */
  isFull = false;
  /** Fields counted beside the others as their names may be data, since they were last forgotten. */
  #doubts = 0;

  constructor(tell: (first: FirstSeen) => void = () => undefined, bounds: Partial<Bounds> = {}) {
    this.#tell = tell;
    this.#bounds = { ...BOUNDS, ...bounds };
  }

  /** Counts an event of the type. @returns null when there are too many types */
  count(type: string, at: number, ids: Ids): TypeMemory | null {
    const memory = this.#byName.get(type) ?? this.#find(type, at, ids);
    if (memory === null) return null;
    memory.seen += 1;
    memory.last = at;
    return memory;
  }

  /** Looks at an event that was counted. @param most of its bytes */
  look(memory: TypeMemory, event: Looked, most = MOST_BYTES): void {
    memory.looked += 1;
    if (this.#doubts >= this.#bounds.doubts) this.#forgetDoubts();
    walk(memory.root, {
      nth: memory.looked,
      at: event.receivedAt,
      body: event.body,
      most,
      ids: event,
      maps: memory.maps,
      mayAdd: () => this.#mayAdd(memory),
      mayDoubt: () => (this.#doubts += 1) <= this.#bounds.doubts,
      tell: (field, kind) => {
        // Its type is news enough.
        if (memory.looked > 1) this.#tell({ memory, field, kind });
      },
      drop: (count) => {
        memory.fields -= count;
        this.fields -= count;
      },
    });
  }

  /** As it was remembered. */
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
      this.#tell({ memory, field: null, kind: null });
    }
    // An id that is a word of other types, too, says nothing of the next event.
    if (type === withoutData(name, NO_IDS) && this.#byName.size < this.#bounds.types)
      this.#byName.set(name, memory);
    return memory;
  }

  /** Those that steadily come are counted anew; the others were what takes the room. */
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

/** What the service documents has no data in its name. */
function withoutData(type: string, ids: Ids): string {
  return TABLES.documentsOf(type).length > 0 ? type : typeWithoutData(type, ids);
}
