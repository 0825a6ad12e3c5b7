import { randomUUID } from 'node:crypto';
import type { Event } from '../../core/event.ts';
import type { FirstSeen } from './memory.ts';

/** News about one event type. */
export interface TypeNews {
  readonly type: string;
  readonly isNew: boolean;
  /** Enough events came before: a new field is a change. */
  readonly isSettled: boolean;
  /** Paths of new fields, and the number of unnamed ones. */
  readonly fields: readonly string[];
  readonly more: number;
  /** New kinds of known fields. */
  readonly kinds: readonly { readonly path: string; readonly kind: string }[];
  /** Number of all fields. */
  readonly known: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Events after which the fields of a type are known. */
const SETTLED = 20;
/** Paths of one type that are named at once. */
const NAMED = 50;

/** Groups news by type, without fields that were folded because their names turned out to be data. */
export function newsOf(all: readonly FirstSeen[]): TypeNews[] {
  return [...Map.groupBy(all, ({ memory }) => memory)].flatMap(([memory, found]) => {
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

/** Names of the members of an event. */
export interface EnvelopeNames {
  readonly type: string;
  readonly team: string;
}

/** Whether an event reports news. */
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
