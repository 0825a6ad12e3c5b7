import { getOrMake } from '../../lib/get-or-make.ts';
import type { FirstSeen, TypeMemory } from './memory.ts';
import { randomUUID } from 'node:crypto';
import type { Event } from '../../core/event.ts';

/** What was never there before in events of one type. */
export interface TypeNews {
  readonly type: string;
  readonly isNew: boolean;
  /** Enough events were there before for a new field to be a surprise. */
  readonly isSettled: boolean;
  /** Paths, and how many more there are. */
  readonly fields: readonly string[];
  readonly more: number;
  /** Fields that were there, as something else. */
  readonly kinds: readonly { readonly path: string; readonly kind: string }[];
  /** Fields that are known now. */
  readonly known: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Events of a type after which its fields are known. */
const SETTLED = 20;
/** Paths of one type that are named at once. */
const NAMED = 50;

/** By type. What was folded into another field meanwhile is not told: its name has turned out to be data. */
export function newsOf(all: readonly FirstSeen[]): TypeNews[] {
  const byType = new Map<TypeMemory, FirstSeen[]>();
  for (const first of all) getOrMake(byType, first.memory, () => []).push(first);
  return [...byType].flatMap(([memory, found]) => {
    const isNew = found.some(({ field }) => field === null);
    const alive = found.flatMap(({ field, kind }) =>
      field === null || field.isGone ? [] : [{ field, kind }],
    );
    if (!isNew && alive.length === 0) return [];
    const fields = alive.flatMap(({ field, kind }) => (kind === null ? [field.path] : []));
    const kinds = alive.flatMap(({ field, kind }) => (kind === null ? [] : [{ path: field.path, kind }]));
    return [
      {
        type: memory.type,
        isNew,
        isSettled: memory.looked > SETTLED,
        fields: isNew ? [] : fields.slice(0, NAMED),
        more: isNew ? 0 : Math.max(fields.length - NAMED, 0),
        kinds: kinds.slice(0, NAMED),
        known: memory.fields,
        at: memory.last,
      },
    ];
  });
}

const SOURCE = 'schema';
const CHANGED = 'millrace.schema.changed';

/** What the members of an event are called. */
export interface EnvelopeNames {
  readonly type: string;
  readonly team: string;
}

/** Whether an event is one that tells what is new. */
export function isChangeEvent({ source, type }: Event): boolean {
  return source === SOURCE && type === CHANGED;
}

/** @param now milliseconds since the epoch */
export function changeEvent(news: TypeNews, names: EnvelopeNames, now: number): Event {
  const { type, isNew, known, fields, more, kinds, at } = news;
  const data = {
    event_type: type,
    is_new_type: isNew,
    known_fields: known,
    new_fields: fields,
    more_fields: more,
    new_kinds: kinds,
    detected_at: new Date(at).toISOString(),
  };
  const body = { [names.type]: CHANGED, [names.team]: null, data };
  return {
    id: randomUUID(),
    source: SOURCE,
    receivedAt: now,
    type: CHANGED,
    team: null,
    user: null,
    clientUser: null,
    headers: {},
    body: Buffer.from(JSON.stringify(body)),
  };
}
