import type { Event } from '../../../src/core/event.ts';
import type { FirstSeen } from '../../../src/observe/schema/memory.ts';
import { SchemaMemory } from '../../../src/observe/schema/memory.ts';
import { makeEvent } from '../../support/events.ts';

export const TYPE = 'made.up.created';

/** An event whose body is this document. */
export function eventOf(document: unknown, changes: Partial<Event> = {}): Event {
  return makeEvent({ type: TYPE, body: Buffer.from(JSON.stringify(document)), ...changes });
}

/** A memory, and what it reported: `path`, or `path kind`. */
export class Learner {
  readonly reported: string[] = [];
  readonly memory: SchemaMemory;

  constructor(bounds?: ConstructorParameters<typeof SchemaMemory>[1]) {
    this.memory = new SchemaMemory((first) => this.reported.push(nameOf(first)), bounds);
  }

  see(...events: readonly Event[]): void {
    for (const event of events) {
      const known = this.memory.count(event.type, event.receivedAt, event);
      if (known !== null) this.memory.look(known, event);
    }
  }

  /** Paths of a type's fields, sorted. */
  paths(type = TYPE): string[] {
    const known = this.memory.types.get(type);
    return [...(known?.root.all() ?? [])].flatMap(({ path }) => (path === '' ? [] : [path])).sort();
  }
}

function nameOf({ memory, field, kind }: FirstSeen): string {
  if (field === null) return memory.type;
  return kind === null ? field.path : `${field.path} ${kind}`;
}
